"""Choose hyper-parameters: on the private records, or on public ones."""
