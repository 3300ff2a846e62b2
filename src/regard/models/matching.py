"""Models of two texts: ESIM, a reader beside another text, and the memory network.

ESIM: Chen et al. (2017), https://arxiv.org/abs/1609.06038. The reader is that of DrQA (Chen et al.,
2017, https://arxiv.org/abs/1704.00051, section 3.2), with the attention between both texts of BiDAF
(Seo et al., 2017, https://arxiv.org/abs/1611.01603). The end-to-end memory network: Sukhbaatar et
al. (2015), https://arxiv.org/abs/1503.08895.
"""

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from regard.attention import Dot, ScaledDot, at, attend
from regard.attention import lengths as visible
from regard.checks import check_count
from regard.errors import ShapeError
from regard.layers import Dropout, RecurrentEncoder, TokenEmbedding
from regard.layers.inputs import real_positions, texts, valid_ids
from regard.layers.pooling import LearnedQuery, maximum, mean
from regard.models.configs.readers import EsimConfig, MatchReaderConfig, MemoryNetworkConfig
from regard.models.heads import OverlapScore
from regard.models.interfaces import PairClassifier, PairReader

_NO_TEXT = "Nothing can be said of a text without tokens: leave it out."


class Esim(PairClassifier):
    """Logits of how two texts stand to each other.

    Both are read by one BiLSTM, ā and b̄. Each word is set beside its context in the other text,
    ``ã_i = Σ softmax_j(ā_i · b̄_j) b̄_j``, as ``[ā; ã; ā − ã; ā ⊙ ã]``; a second BiLSTM reads that,
    and mean and maximum of both texts decide.

    Args:
        config: Sizes.
        vocab_size: Number of token ids, V.
        num_classes: How many answers there are.
        num_features: Numbers of the overlap of both texts, F; their logits are added.

    Example:
        >>> model = Esim(EsimConfig(embed_dim=6, hidden_dim=4), vocab_size=11, num_classes=2)
        >>> ids = torch.ones(2, 5, dtype=torch.long)
        >>> model(ids, torch.tensor([5, 2]), ids[:, :3], torch.tensor([1, 3])).shape
        torch.Size([2, 2])
    """

    reads_overlap = True

    def __init__(
        self, config: EsimConfig, *, vocab_size: int, num_classes: int = 2, num_features: int = 0
    ) -> None:
        super().__init__()
        check_count("num_classes", num_classes)
        self.config = config
        self.max_length = None
        hidden = config.hidden_dim
        self.embedding = TokenEmbedding(vocab_size, config.embed_dim, scaled=False)
        # Drawn as the paper draws words without a pretrained vector. Smaller ones make states that
        # are all alike, and neither text finds its own words in the other.
        nn.init.normal_(self.embedding.weight)
        self.dropout = Dropout(config.dropout)
        self.read = RecurrentEncoder("lstm", config.embed_dim, hidden)
        self.compare = nn.Linear(8 * hidden, hidden)
        self.read_again = RecurrentEncoder("lstm", hidden, hidden)
        self.decide = nn.Linear(8 * hidden, hidden)
        self.output = nn.Linear(hidden, num_classes)
        self.overlap = OverlapScore(num_features, num_classes) if num_features else None

    def forward(
        self,
        first: Int[Tensor, "B N"],
        first_lengths: Int[Tensor, " B"],
        second: Int[Tensor, "B M"],
        second_lengths: Int[Tensor, " B"],
        *,
        overlap: Float[Tensor, "B F"] | None = None,
    ) -> Float[Tensor, "B K"]:
        first, first_lengths = texts("first", first, first_lengths, least=1, cure=_NO_TEXT)
        second, second_lengths = texts("second", second, second_lengths, least=1, cure=_NO_TEXT)
        a = self.read(self.dropout(self.embedding(first)), first_lengths)[0]
        b = self.read(self.dropout(self.embedding(second)), second_lengths)[0]
        with at("cross", 0):
            context_of_a = attend(a, b, score=Dot(), mask=visible(second_lengths))
        with at("cross", 1):
            context_of_b = attend(b, a, score=Dot(), mask=visible(first_lengths))
        pooled = [
            *self._compose(a, context_of_a, first_lengths),
            *self._compose(b, context_of_b, second_lengths),
        ]
        decided = torch.tanh(self.decide(self.dropout(torch.cat(pooled, dim=-1))))
        logits: Tensor = self.output(self.dropout(decided))
        if self.overlap is not None and overlap is not None:
            logits = logits + self.overlap(overlap)
        return logits

    @torch.no_grad()
    def divide_logits(self, temperature: float) -> None:
        """Divide all that is summed to logits by a temperature, in the weights."""
        for layer in (self.output, *([] if self.overlap is None else [self.overlap.output])):
            layer.weight.div_(temperature)
            layer.bias.div_(temperature)

    def _compose(self, inputs: Tensor, context: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        """Mean and maximum of a text read beside its context in the other."""
        both = torch.cat([inputs, context, inputs - context, inputs * context], dim=-1)
        narrow = torch.relu(self.compare(both))
        states = self.read_again(self.dropout(narrow), lengths)[0]
        return mean(states, lengths), maximum(states, lengths)


class MatchReader(PairReader):
    """A state for each token of a text that knows its matches in another text.

    A BiLSTM reads the other text, and a learned query makes one vector of its states ``q_j``. A
    token of the text is read, by another, as its embedding ``e``, its
    ``features`` (whether its word stands in the other text, …), the embedding it is aligned with
    there, ``Σ_j softmax_j(relu(W e_i) · relu(W o_j)) o_j``, and that vector: DrQA meets it only
    when the answer's ends are scored. With ``compares``, the outputs of both BiLSTMs are set
    side by side, ``c_i = Σ_j softmax_j(h_i · q_j) q_j``, or by another similarity, and
    ``[h; c; h ⊙ c]``, and a last one reads how they compare.

    Args:
        config: Sizes.
        vocab_size: Number of token ids, V.
        num_features: How many numbers are said of each token, F.

    Example:
        >>> reader = MatchReader(MatchReaderConfig(), vocab_size=11, num_features=2)
        >>> ids, lengths = torch.ones(2, 5, dtype=torch.long), torch.tensor([5, 2])
        >>> reader(ids, lengths, other=ids[:, :3], other_lengths=torch.tensor([1, 3]),
        ...     features=torch.zeros(2, 5, 2)).shape
        torch.Size([2, 5, 128])
    """

    def __init__(
        self, config: MatchReaderConfig, *, vocab_size: int, num_features: int = 0
    ) -> None:
        super().__init__()
        self.config = config
        self.max_length = None
        width, hidden = config.embed_dim, config.hidden_dim
        read_dim = 2 * hidden * config.num_layers
        self.output_dim = 2 * hidden if config.compares else read_dim
        self.embedding = TokenEmbedding(vocab_size, width, scaled=False)
        self.dropout = Dropout(config.dropout)
        self.align = nn.Linear(width, width)
        self.read_other = RecurrentEncoder(config.cell, width, hidden)
        self.read_other_on = _further_layers(config)
        self.pool = LearnedQuery(read_dim)
        self.read = RecurrentEncoder(config.cell, 2 * width + read_dim + num_features, hidden)
        self.read_on = _further_layers(config)
        if config.compares:
            self.similarity = Trilinear(read_dim) if config.similarity == "trilinear" else None
            self.compare = nn.Linear(3 * read_dim, 2 * hidden)
            self.read_again = RecurrentEncoder(config.cell, 2 * hidden, hidden)

    def forward(
        self,
        ids: Int[Tensor, "R N"],
        lengths: Int[Tensor, " R"],
        *,
        other: Int[Tensor, "S M"],
        other_lengths: Int[Tensor, " S"],
        features: Float[Tensor, "R N F"],
    ) -> Float[Tensor, "R N C"]:
        """The states, zero in padding; see :meth:`PairReader.forward`.

        Raises:
            ShapeError: The rows of the other text do not divide those of the text.
        """
        ids, lengths = texts("ids", ids, lengths)
        other, other_lengths = texts("other", other, other_lengths)
        if len(ids) % len(other):
            raise ShapeError(
                f"other must have as many rows as ids, or divide them; got {len(other)} for "
                f"{len(ids)}."
            )
        rows = len(ids) // len(other)
        tokens = self.dropout(self.embedding(ids))
        theirs = self.dropout(self.embedding(other))
        read = self._stacked(self.read_other, self.read_other_on, theirs, other_lengths)
        read = self.dropout(read)
        whole = self.pool(read, other_lengths)
        theirs, read, whole = (
            tensor.repeat_interleave(rows, 0) for tensor in (theirs, read, whole)
        )
        mask = visible(other_lengths.repeat_interleave(rows, 0))
        with at("cross", 1):
            query, key = self.align(tokens).relu(), self.align(theirs).relu()
            score = Dot() if self.config.alignment == "dot" else ScaledDot()
            aligned = attend(query, key, theirs.to(key.dtype), score=score, mask=mask)
        everywhere = whole[:, None].expand(-1, ids.shape[1], -1)
        inputs = torch.cat([tokens, aligned, everywhere, features], -1)
        states = self._stacked(self.read, self.read_on, inputs, lengths)
        if not self.config.compares:
            return states
        states = self.dropout(states)
        queries = states if self.similarity is None else self.similarity(states)
        with at("cross", 2):
            context = attend(queries, read, score=Dot(), mask=mask)
        compared = self.compare(torch.cat([states, context, states * context], -1)).relu()
        again: Tensor = self.read_again(self.dropout(compared), lengths)[0]
        return again

    def _stacked(
        self, first: nn.Module, further: nn.ModuleList, inputs: Tensor, lengths: Tensor
    ) -> Float[Tensor, "R N Y"]:
        """The outputs of all layers side by side, each of which reads that of the one before."""
        outputs: list[Tensor] = [first(inputs, lengths)[0]]
        for layer in further:
            outputs.append(layer(self.dropout(outputs[-1]), lengths)[0])
        return torch.cat(outputs, dim=-1)


class Trilinear(nn.Module):
    """BiDAF's similarity as queries for a dot product; ``w₁ · h`` would change no softmax."""

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.of_key = nn.Parameter(torch.zeros(dim))
        self.of_product = nn.Parameter(torch.ones(dim))

    def forward(self, states: Float[Tensor, "*batch C"]) -> Float[Tensor, "*batch C"]:
        return self.of_key + self.of_product * states


def _further_layers(config: MatchReaderConfig) -> nn.ModuleList:
    """The layers after the first, each of which reads the one before."""
    return nn.ModuleList(
        RecurrentEncoder(config.cell, 2 * config.hidden_dim, config.hidden_dim)
        for _ in range(config.num_layers - 1)
    )


class MemoryNetwork(nn.Module):
    """Memory network: selects the sentence, or the word, that answers a question, in several hops.

    A sentence is a memory ``m_i = Σ_j l_j ⊙ A x_ij + T_A(i)`` to be matched and ``c_i``, the same
    with C, to be mixed; l tells words' positions apart, or is 1, and i counts sentences backwards
    from the last, which is nearest to the question (section 4.1). A hop adds its
    context to the question, ``u ← H u + Σ softmax_i(u · m_i) c_i``. The hops share their tables
    (section 2.2, layer-wise), and the question is read by A too, so that from the first step on it
    finds the sentences that have its words. Where numbers describe a sentence's overlap with
    the question, a score of them, of its neighbours' and of the question adds to each ``u · m_i``.
    The last ``u · m_i`` are the logits: the answer is a sentence. The paper's is a word, by a layer
    ``W u`` after the last hop.

    Args:
        config: Sizes.
        vocab_size: Number of word ids, V; 0 is padding.
        num_features: Numbers of the overlap of each sentence and the question, F.

    Example:
        >>> model = MemoryNetwork(MemoryNetworkConfig(model_dim=8), vocab_size=11)
        >>> sentences, question = torch.ones(2, 4, 5).long(), torch.ones(2, 3).long()
        >>> model(sentences, torch.tensor([4, 2]), question).softmax(-1)[1, 2:].tolist()
        [0.0, 0.0]
    """

    def __init__(
        self, config: MemoryNetworkConfig, *, vocab_size: int, num_features: int = 0
    ) -> None:
        super().__init__()
        self.config = config
        width = config.model_dim
        # The question's words are found from the first step on, unless numbers say where they are,
        # which chance matches of other words would blur; a hop begins by adding little.
        self.match = _table(vocab_size, width, 0.02 if num_features else 0.07)
        self.mix = _table(vocab_size, width, 0.01)
        self.match_order, self.mix_order = (
            _table(config.max_sentences, width, 0.03) for _ in range(2)
        )
        self.between = nn.Linear(width, width, bias=False)
        nn.init.eye_(self.between.weight)
        self.overlap = OverlapScore(3 * num_features + width, 1) if num_features else None
        self.dropout = Dropout(config.dropout)

    def forward(
        self,
        sentences: Int[Tensor, "B M J"],
        counts: Int[Tensor, " B"],
        question: Int[Tensor, "B Q"],
        overlap: Float[Tensor, "B M F"] | None = None,
    ) -> Float[Tensor, "B M"]:
        """The logits of the sentences, −inf in padding; ``counts`` says how many are real.

        Ids are padded with 0 on the right; ``overlap`` describes the words that each
        sentence shares with the question, 0 in padding.

        Raises:
            ShapeError: There are more sentences than ``max_sentences``.
        """
        sentences, counts = texts("sentences", sentences, counts)
        mask = visible(counts)
        u = self.dropout(self._read(question, self.match))
        positions = self._positions(sentences, counts)
        memory = self._memory(sentences, self.match, self.match_order[positions])
        values = self._memory(sentences, self.mix, self.mix_order[positions])
        bias = None
        if self.overlap is not None and overlap is not None:
            # The numbers of each sentence, of the one before and of the one after it.
            before, after = overlap.roll(1, 1), overlap.roll(-1, 1)
            before[:, 0], after[:, -1] = 0, 0
            query = u[:, None].expand(-1, sentences.shape[1], -1)
            bias = self.overlap(torch.cat([overlap, before, after, query], -1)).mT
        for hop in range(self.config.num_hops):
            with at("cross", hop):
                context = attend(u[:, None], memory, values, score=Dot(), mask=mask, bias=bias)
            u = self.between(u) + context[:, 0]
        logits: Tensor = (memory @ u[..., None]).squeeze(-1)
        if bias is not None:
            logits = logits + bias[:, 0]
        return logits.masked_fill(~real_positions(counts, sentences.shape[1]), -torch.inf)

    def _positions(
        self, sentences: Int[Tensor, "B M J"], counts: Int[Tensor, " B"]
    ) -> Int[Tensor, "B M"]:
        """The number of each sentence, from 0; of padding any."""
        B, M, _ = sentences.shape
        if self.config.max_sentences < M:
            raise ShapeError(
                f"sentences must be at most max_sentences={self.config.max_sentences}; got {M}."
            )
        positions = torch.arange(M, device=sentences.device).expand(B, M)
        if self.config.counted_from == "first":
            return positions
        return (counts[:, None] - 1 - positions).clamp(min=0)

    def _memory(self, sentences: Tensor, words: Tensor, order: Tensor) -> Tensor:
        memory: Tensor = self.dropout(self._read(sentences, words) + order)
        return memory

    def _read(self, ids: Tensor, words: Tensor) -> Tensor:
        """Sums of word vectors: a vector for each row of words."""
        ids = valid_ids("token ids", ids, len(words))
        vectors = words[ids] * (ids > 0)[..., None]
        if self.config.encoding == "position":
            # A weight for each word and number: (1 − j/J) − (k/d)(1 − 2j/J).
            J, d = (ids > 0).sum(-1).clamp(min=1)[..., None, None], words.shape[1]
            j = torch.arange(1, ids.shape[-1] + 1, device=ids.device)[:, None]
            k = torch.arange(1, d + 1, device=ids.device)
            vectors = vectors * ((1 - j / J) - (k / d) * (1 - 2 * j / J))
        total: Tensor = vectors.sum(-2)
        return total


def _table(rows: int, width: int, deviation: float) -> nn.Parameter:
    return nn.Parameter(deviation * torch.randn(rows, width))
