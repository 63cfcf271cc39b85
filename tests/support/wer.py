"""Word error rate with a written-down normalisation.

Lives here: `normalise`, `wer`, `wer_of_set`. Owned by the test suite; pure, standard library only.
It forgives spelling, never words: both sides pass the same rules and then every difference counts.

Rules, in this order:
1. Unicode NFKC, lower case; curly apostrophes become straight; hyphens and dashes become spaces.
2. `%`, `&`, `$5`, `7:30`, `10.5`, `1,000`: symbols become words, digits stay together for now.
3. Punctuation is dropped; apostrophes survive inside a word.
4. Contractions are written out where that is unambiguous enough ("i'd" = "i would").
5. British and American spellings, abbreviations and variants become one form ("metres", "ok").
6. Numbers become their digits, one word a digit, from both sides: "ten" = "10" = `1 0`,
   "seven thirty" = "7:30" = `7 3 0`, "two nine three" = "293". "oh" next to a digit is `0`.
   A number of n digits therefore weighs n words. "one hundred and five" = "105".
"""

import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

Kind = Literal["=", "S", "D", "I"]

_CONTRACTIONS = {
    "can't": "can not",
    "won't": "will not",
    "let's": "let us",
    "i'm": "i am",
    "cannot": "can not",
    "gonna": "going to",
}
_ENDINGS = {"n't": "not", "'re": "are", "'ve": "have", "'ll": "will", "'d": "would"}
_IS = {"that", "it", "he", "she", "what", "where", "there", "here", "who", "how"}
_SPELLINGS = {
    "metres": "meters",
    "metre": "meter",
    "kilometres": "kilometers",
    "colour": "color",
    "favour": "favor",
    "grey": "gray",
    "centre": "center",
    "mr": "mister",
    "mrs": "missus",
    "dr": "doctor",
    "ok": "okay",
    "o'clock": "oclock",
    "mhm": "mm hm",
    "mmhm": "mm hm",
    "hmm": "hm",
    "yeah": "yes",
}
_NUMBERS = """zero one two three four five six seven eight nine ten eleven twelve thirteen
fourteen fifteen sixteen seventeen eighteen nineteen"""
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety"
_ORDINALS = {"1st": "first", "2nd": "second", "3rd": "third", "4th": "fourth", "5th": "fifth"}
_SMALL = {word: value for value, word in enumerate(_NUMBERS.split())} | {
    word: 10 * (2 + index) for index, word in enumerate(_TENS.split())
}
_SCALES = {"hundred": 100, "thousand": 1000}


def _symbols(text: str) -> str:
    text = re.sub(r"\b(hundred|thousand) and\b", r"\1", text)
    text = re.sub(r"[-\u2010-\u2015/_]", " ", text)
    text = re.sub(r"(?<=\d),(?=\d{3}\b)", "", text)
    text = re.sub(r"\$\s*(\d+(?:\.\d+)?)", r"\1 dollars", text)
    text = re.sub(r"(\d):00\b", r"\1", text)
    text = re.sub(r"(?<=\d):(?=\d)", " ", text)
    text = re.sub(r"(?<=\d)\.(?=\d)", " point ", text)
    text = re.sub(r"\b([ap])\.\s?m\b\.?", r"\1m", text)
    text = re.sub(r"(?<=\d)(?=[ap]m\b)", " ", text)
    return text.replace("%", " percent ").replace("&", " and ")


def _expanded(word: str) -> list[str]:
    if word in _CONTRACTIONS:
        return _CONTRACTIONS[word].split()
    for ending, full in _ENDINGS.items():
        if word.endswith(ending) and len(word) > len(ending):
            return [word.removesuffix(ending), full]
    if word.endswith("'s") and word[:-2] in _IS:
        return [word[:-2], "is"]
    return _SPELLINGS.get(_ORDINALS.get(word, word), _ORDINALS.get(word, word)).split()


def _scaled(words: Sequence[str], start: int) -> tuple[int, int] | None:
    """Read one number in words at `start`: (value, index after it), or None."""
    if words[start] not in _SMALL:
        return None
    total, current, at = 0, _SMALL[words[start]], start + 1
    while at < len(words):
        word = words[at]
        if word in _SCALES:
            current *= _SCALES[word]
            if word == "thousand":
                total, current = total + current, 0
        elif not _joins(words, at, current):
            break
        else:
            current += _SMALL[word]
        at += 1
    return total + current, at


def _joins(words: Sequence[str], at: int, current: int) -> bool:
    """Does a small number continue the one before it ("twenty five", "one hundred five")?"""
    if words[at] not in _SMALL:
        return False
    value = _SMALL[words[at]]
    after_tens = current % 100 >= 20 and current % 10 == 0 and 0 < value < 10
    after_hundreds = words[at - 1] in _SCALES and 0 < value < 100
    return after_tens or after_hundreds


def _digits(words: list[str]) -> list[str]:
    out: list[str] = []
    at = 0
    while at < len(words):
        number = _scaled(words, at)
        if number is not None:
            value, at = number
            out += list(str(value))
            continue
        word = words[at]
        out += list(word) if word.isdigit() else [word]
        at += 1
    return [
        "0" if word in ("oh", "o") and _beside_digit(out, index) else word
        for index, word in enumerate(out)
    ]


def _beside_digit(words: Sequence[str], index: int) -> bool:
    around = [*words[max(0, index - 1) : index], *words[index + 1 : index + 2]]
    return any(word.isdigit() for word in around)


def normalise(text: str) -> list[str]:
    """The words of a text after the rules of this module; digits are single words."""
    text = unicodedata.normalize("NFKC", text).lower().replace("\u2019", "'").replace("\u2018", "'")
    raw = re.findall(r"[^\W_]+(?:'[^\W_]+)*", _symbols(text))
    return _digits([part for word in raw for part in _expanded(word)])


@dataclass(frozen=True, slots=True)
class Wer:
    """Errors over reference words, with the alignment that gave them."""

    words: int
    substitutions: int
    deletions: int
    insertions: int
    alignment: tuple[tuple[Kind, str, str], ...]

    @property
    def errors(self) -> int:
        """Substitutions, deletions and insertions together."""
        return self.substitutions + self.deletions + self.insertions

    @property
    def rate(self) -> float:
        """Errors per reference word; with an empty reference 0.0 or infinite."""
        if self.words == 0:
            return float("inf") if self.errors else 0.0
        return self.errors / self.words

    def differences(self) -> str:
        """The errors alone: `ten>in -please +the`; empty when there are none."""
        show = {"S": "{0}>{1}", "D": "-{0}", "I": "+{1}"}
        return " ".join(show[k].format(a, b) for k, a, b in self.alignment if k != "=")


def wer(reference: str, hypothesis: str) -> Wer:
    """Align two texts word by word (Levenshtein, equal costs) after `normalise`."""
    return _aligned(normalise(reference), normalise(hypothesis))


def _aligned(ref: list[str], hyp: list[str]) -> Wer:
    cost = [[0] * (len(hyp) + 1) for _ in range(len(ref) + 1)]
    for i in range(len(ref) + 1):
        for j in range(len(hyp) + 1):
            if i == 0 or j == 0:
                cost[i][j] = i + j
            else:
                change = cost[i - 1][j - 1] + (ref[i - 1] != hyp[j - 1])
                cost[i][j] = min(change, cost[i - 1][j] + 1, cost[i][j - 1] + 1)
    steps = tuple(reversed(_trace(ref, hyp, cost)))
    kinds = [step[0] for step in steps]
    return Wer(len(ref), kinds.count("S"), kinds.count("D"), kinds.count("I"), steps)


def _trace(ref: list[str], hyp: list[str], cost: list[list[int]]) -> list[tuple[Kind, str, str]]:
    steps: list[tuple[Kind, str, str]] = []
    i, j = len(ref), len(hyp)
    while i or j:
        same = i > 0 and j > 0 and ref[i - 1] == hyp[j - 1]
        if i and j and cost[i][j] == cost[i - 1][j - 1] + (not same):
            steps.append(("=" if same else "S", ref[i - 1], hyp[j - 1]))
            i, j = i - 1, j - 1
        elif i and cost[i][j] == cost[i - 1][j] + 1:
            steps.append(("D", ref[i - 1], ""))
            i -= 1
        else:
            steps.append(("I", "", hyp[j - 1]))
            j -= 1
    return steps


@dataclass(frozen=True, slots=True)
class SetWer:
    """Word error rate over a set: all errors over all reference words."""

    items: tuple[tuple[str, Wer], ...]

    @property
    def rate(self) -> float:
        """Pooled rate (long recordings weigh more), not the mean of the rates."""
        words = sum(item.words for _, item in self.items)
        errors = sum(item.errors for _, item in self.items)
        return errors / words if words else 0.0

    def report(self) -> str:
        """One line per item with its errors, then the total; for a test to print."""
        lines = [
            f"{name:24} {item.errors:3}/{item.words:<3} {item.differences()}".rstrip()
            for name, item in self.items
        ]
        words = sum(item.words for _, item in self.items)
        errors = sum(item.errors for _, item in self.items)
        return "\n".join([*lines, f"{'WER':24} {errors:3}/{words:<3} = {self.rate:.3f}"])


def wer_of_set(triples: Iterable[tuple[str, str, str]]) -> SetWer:
    """From (name, reference, hypothesis) triples."""
    return SetWer(tuple((name, wer(reference, said)) for name, reference, said in triples))
