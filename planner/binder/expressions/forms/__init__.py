"""Forms: calls that are bound by hand, because no list of overloads says what they take or give."""
