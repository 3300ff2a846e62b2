"""``attend`` in graphs: operators for torch.compile and torch.export."""
