"""What concerns the process: threads that wait and are told to end, memory, recursion, forks, garbage."""
