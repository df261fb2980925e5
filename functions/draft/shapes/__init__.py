"""The shapes: workflows with one contract. Each collects; the model only writes."""
