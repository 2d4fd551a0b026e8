"""What ends a pipeline: `partial(batch) -> state`, `merge(states) -> state`, `finish(state) -> Frame or build`."""
