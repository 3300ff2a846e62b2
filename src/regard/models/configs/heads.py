"""Settings of heads on a model that reads, and of kernel regression."""

from dataclasses import dataclass
from typing import Annotated, Literal

from regard.checks import check_positive
from regard.fields import Count, Share, Weight
from regard.layers import PoolingName
from regard.models.configs import ModelConfig


@dataclass(frozen=True, kw_only=True, slots=True)
class ClassifierConfig(ModelConfig):
    """Options of the head.

    Raises:
        SettingError: A value is of another type, none of the choices, or out of range.

    Example:
        >>> from regard.tasks import recipe_from_table
        >>> recipe = recipe_from_table({"task": "classification", "head": {"pooling": "query"}})
        >>> recipe.head.pooling, recipe.head.dropout
        ('query', 0.2)

    Attributes:
        pooling: How a text becomes one vector: its ``first`` state, the ``mean``, the ``maximum``,
            or what a query gathers: a learned one (``query``; as in Zhou et al., 2016, with tanh
            before and after: ``tanh_query``), several (``structured``, as in Lin et al., 2017), one
            made of the text (``state``), or that of the text's ``aspect``.
        num_hops: How many queries ``structured`` has; the vector is as many times as wide. The
            paper has 30.
        attention_dim: Width of what they look at; 350 in the paper.
        penalty: What ``‖A Aᵀ − I‖²`` of its weights counts in the loss, so that the queries look at
            different words; 1 in the paper. Too much of it, and nothing else is learned.
        pooler: Whether the text's vector goes through a linear layer and tanh before the last
            layer, as BERT's does (Devlin et al., 2019); what training began with may have learned
            it.
        ngram_scores: Whether scores that the parts of the words, such as phrases, have for each
            label are added, weighed at first by how rare and how telling they are in the training
            text (NB-SVM: Wang & Manning, 2012, https://aclanthology.org/P12-2018). With the pooling
            ``aspect``, each aspect has scores of its own besides. The model need not read parts.
        ngram_dropout: Share of those n-grams that are left out while training.
        dropout: Share dropped of that vector while training.
    """

    pooling: PoolingName = "mean"
    num_hops: Count = 5
    attention_dim: Count = 128
    penalty: Weight = 0.1
    pooler: bool = False
    ngram_scores: bool = False
    ngram_dropout: Share = 0.0
    dropout: Share = 0.2


@dataclass(frozen=True, kw_only=True, slots=True)
class SpanFinderConfig(ModelConfig):
    """Options of the head.

    Raises:
        SettingError: The share is not at least 0 and below 1.

    Example:
        >>> from regard.config import build
        >>> build(SpanFinderConfig, {"dropout": 1.5}, where="head")
        Traceback (most recent call last):
        regard.errors.SettingError: head.dropout must be at least 0 and below 1; got 1.5.

    Attributes:
        dropout: Share dropped of the states while training.
    """

    dropout: Share = 0.1


@dataclass(frozen=True, kw_only=True, slots=True)
class TaggerConfig(ModelConfig):
    """Options of the head.

    Raises:
        SettingError: A value is of another type or out of range.

    Example:
        >>> from regard.tasks import recipe_from_table
        >>> recipe_from_table({"task": "tagging", "head": {"crf": True}}).head
        TaggerConfig(crf=True, dropout=0.3)

    Attributes:
        crf: Whether tags are scored together with their neighbours, instead of each by itself.
        dropout: Share dropped of the states while training.
    """

    crf: bool = False
    dropout: Share = 0.3


@dataclass(frozen=True, kw_only=True, slots=True)
class KernelRegressionConfig(ModelConfig):
    """Kernel and bandwidth of kernel regression.

    Raises:
        SettingError: The kernel is none of the choices, or the bandwidth is not above 0.

    Example:
        >>> import torch
        >>> from regard.models import KernelRegression
        >>> places, seen = torch.tensor([[0.0], [1.0]]), torch.tensor([[2.0], [4.0]])
        >>> configs = [KernelRegressionConfig(bandwidth=each) for each in (0.1, float("inf"))]
        >>> [KernelRegression(each)(places[:1], places, seen).item() for each in configs]
        [2.0, 3.0]

    Attributes:
        kernel: ``gaussian``, ``laplace``, ``epanechnikov`` or ``box``.
        bandwidth: How far "near" reaches, at first. Infinite: every key counts the same, whatever
            the query, which is average pooling.
        per_dimension: Whether each dimension has a bandwidth of its own.
        is_learned: Whether the bandwidth is trained. That of a box has no gradient.
    """

    kernel: Literal["gaussian", "laplace", "epanechnikov", "box"] = "gaussian"
    bandwidth: Annotated[float, check_positive] = 1.0
    per_dimension: bool = False
    is_learned: bool = False
