"""Lists, arrays, structs, maps and unions: made, taken apart, and functions of them."""
