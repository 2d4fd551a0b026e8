"""Physical plans: algorithms chosen by estimates and costs."""
