"""Words that all wings share: datasets, targets, norms, promises, random streams."""
