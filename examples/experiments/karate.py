"""Attention over the edges of a graph: who sides with whom, from two members that are known.

    python examples/experiments/karate.py [--runs 20]

Zachary's karate club (W. W. Zachary, An Information Flow Model for Conflict and Fission in Small
Groups, Journal of Anthropological Research 33, 1977): 34 members, 78 friendships, and a quarrel of
the instructor (0) and the president (33) that split it. Sides are those of the club's records.
"""

import argparse

import torch
from torch import nn
from torch.nn import functional as F

import regard as rg

# The friends of each member who have a larger number.
FRIENDS = {
    0: (1, 2, 3, 4, 5, 6, 7, 8, 10, 11, 12, 13, 17, 19, 21, 31),
    1: (2, 3, 7, 13, 17, 19, 21, 30),
    2: (3, 7, 8, 9, 13, 27, 28, 32),
    3: (7, 12, 13),
    4: (6, 10),
    5: (6, 10, 16),
    6: (16,),
    8: (30, 32, 33),
    9: (33,),
    13: (33,),
    14: (32, 33),
    15: (32, 33),
    18: (32, 33),
    19: (33,),
    20: (32, 33),
    22: (32, 33),
    23: (25, 27, 29, 32, 33),
    24: (25, 27, 31),
    25: (31,),
    26: (29, 33),
    27: (33,),
    28: (31, 33),
    29: (32, 33),
    30: (32, 33),
    31: (32, 33),
    32: (33,),
}
EDGES = torch.tensor([(one, other) for one, others in FRIENDS.items() for other in others])
SIDES = torch.ones(34, dtype=torch.long)  # 0 with the instructor, 1 with the president
SIDES[[0, 1, 2, 3, 4, 5, 6, 7, 8, 10, 11, 12, 13, 16, 17, 19, 21]] = 0
KNOWN = torch.tensor([0, 33])


def neighbours():
    """Mask of the members a member may look at (34, 34): friends, and itself."""
    visible = torch.eye(34, dtype=torch.bool)
    visible[EDGES[:, 0], EDGES[:, 1]] = visible[EDGES[:, 1], EDGES[:, 0]] = True
    return visible


class GraphAttention(nn.Module):
    """Self-attention in which a node sees its neighbours alone."""

    def __init__(self, inner, outer):
        super().__init__()
        self.query, self.key = nn.Linear(inner, outer), nn.Linear(inner, outer)
        self.value = nn.Linear(inner, outer)

    def forward(self, nodes, visible):
        q, k, v = self.query(nodes), self.key(nodes), self.value(nodes)
        return rg.attend(q, k, v, mask=rg.dense(visible))


class Classifier(nn.Module):
    """Two layers, so that a member hears of friends of friends; each begins with a number alone."""

    def __init__(self, width=16):
        super().__init__()
        self.first, self.second = GraphAttention(34, width), GraphAttention(width, 2)

    def forward(self, visible):
        return self.second(torch.tanh(self.first(torch.eye(34), visible)), visible)


def train(seed, updates=100):
    """Train on the sides of the two who are known."""
    torch.manual_seed(seed)
    model, visible = Classifier(), neighbours()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01, weight_decay=0.01)
    for _ in range(updates):
        loss = F.cross_entropy(model(visible)[KNOWN], SIDES[KNOWN])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return model


@torch.no_grad()
def right(model):
    """Mask of the other 32 members: True where they are put on their side."""
    guessed = model(neighbours()).argmax(-1) == SIDES
    return guessed[torch.arange(1, 33)]


@torch.no_grad()
def weights(model):
    """Weights of each member in the first layer (34, 34), and the probability of its side (34)."""
    nodes, visible = torch.eye(34), neighbours()
    first = model.first
    looked = rg.weights(first.query(nodes), first.key(nodes), mask=rg.dense(visible))
    return looked, model(visible).softmax(-1)[:, 1]


def main(runs):
    """Print how many of the 32 are right, and who is wrong."""
    guesses = torch.stack([right(train(seed)) for seed in range(runs)])
    counts = guesses.sum(1).tolist()
    times_wrong = (~guesses).sum(0).tolist()
    wrong = [f"member {node} in {n} runs" for node, n in enumerate(times_wrong, 1) if n]
    print(f"{len(EDGES)} edges; sides known of 2 members, asked of 32; {runs} runs")
    print(f"right: {sum(counts) / runs:.1f} of 32 (worst run {min(counts)}, best {max(counts)})")
    print(f"wrong: {', '.join(wrong) or 'nobody'}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=20)
    main(**vars(parser.parse_args()))
