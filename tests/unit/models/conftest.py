"""A short training, by which a model shows that it learns."""

import torch


def train(model, loss_of, *, steps=80, lr=1e-2, clip=None):
    """The model in evaluation mode after some updates by the loss of each step's number."""
    optimizer = torch.optim.Adam(model.parameters(), lr=lr)
    for step in range(steps):
        optimizer.zero_grad()
        loss_of(step).backward()
        if clip is not None:
            torch.nn.utils.clip_grad_norm_(model.parameters(), clip)
        optimizer.step()
    return model.eval()
