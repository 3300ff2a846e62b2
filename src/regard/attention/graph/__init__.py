"""``attend`` in graphs: what torch.compile and torch.export are given."""
