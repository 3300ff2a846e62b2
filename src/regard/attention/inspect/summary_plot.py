"""A matplotlib figure of a summary: for papers and notebooks that have it."""

from typing import TYPE_CHECKING

from regard.errors import SettingError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from regard.attention.inspect.summary import Summary

_MOST_HEADS, _COLUMNS = 32, 8


def plot(summary: "Summary") -> "Figure":
    """The map of every head, above what its queries spread over and what its keys receive.

    Of more than 32 heads, the first 32. No window is opened: the figure belongs to the caller.

    Raises:
        SettingError: matplotlib is not installed.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise SettingError(
            'plot() must have matplotlib; it is not installed. Run: pip install "regard[plots]".'
        ) from None
    N, M = summary.shape[-2:]
    heads = [
        tensor.detach().float().cpu().flatten(0, -axes - 1)[:_MOST_HEADS]
        for tensor, axes in (
            (summary.pooled.unsqueeze(0), 2),
            (summary.effective_keys.unsqueeze(0), 1),
            (summary.received.unsqueeze(0), 1),
        )
    ]
    count = len(heads[0])
    across = max(1, min(_COLUMNS, count))
    down = max(1, -(-count // across))
    figure = Figure(figsize=(2.4 * across, 4.0 * down), layout="constrained")
    axes = figure.subplots(3 * down, across, squeeze=False, height_ratios=[3, 1, 1] * down)
    for panel in axes.flat:
        panel.set_visible(False)
    for number, (pooled, effective, received) in enumerate(zip(*heads, strict=True)):
        row, column = divmod(number, across)
        image, of_queries, of_keys = (axes[3 * row + k][column] for k in range(3))
        for panel in (image, of_queries, of_keys):
            panel.set_visible(True)
            panel.tick_params(labelsize=6)
        # The root shows small masses beside large ones.
        image.imshow(pooled.sqrt().numpy(), cmap="cividis", aspect="auto", extent=(0, M, N, 0))
        image.set_title(f"{number}", fontsize=8)
        image.set_ylabel("query", fontsize=7)
        of_queries.plot(effective.numpy(), linewidth=0.8, color="#00529b")
        of_queries.set_ylabel("effective keys", fontsize=7)
        of_keys.plot(received.numpy(), linewidth=0.8, color="#b35900")
        of_keys.set_ylabel("received", fontsize=7)
    return figure
