"""UUIDs in tensors as bytes and as text: see `tqp.core.uuids` for how they are stored."""

from __future__ import annotations

import torch
from torch import Tensor

from tqp.data.unsigned_words import turned, words_of

#: Bytes of a UUID, and those of its text, of which 32 are digits of base 16.
UUID_BYTES, UUID_TEXT_BYTES = 16, 36
HYPHENS = (8, 13, 18, 23)
DIGITS = tuple(place for place in range(UUID_TEXT_BYTES) if place not in HYPHENS)

_LETTERS = b"0123456789abcdef"
#: The two digits of each byte.
_PAIRS = bytes(letter for byte in range(256) for letter in (_LETTERS[byte >> 4], _LETTERS[byte & 15]))


def uuid_bytes(values: Tensor) -> Tensor:
    """uint8 [n, 16], most significant first, of stored values: int64 [n, 2], or integers [n] of 64 bits at most."""
    return words_of(values).view(torch.uint8).view(-1, 2, 8).flip(2).reshape(-1, UUID_BYTES)


def uuid_values(content: Tensor) -> Tensor:
    """The stored values, int64 [n, 2], of bytes, uint8 [n, 16]: the other way round of `uuid_bytes`."""
    return turned(content.reshape(-1, 2, 8).flip(2).contiguous().view(-1, UUID_BYTES).view(torch.int64))


def uuid_texts(values: Tensor) -> Tensor:
    """uint8 [n, 36]: the texts of stored values."""
    content = uuid_bytes(values)
    pairs = torch.tensor(list(_PAIRS), dtype=torch.uint8, device=content.device).view(256, 2)
    digits = torch.index_select(pairs, 0, content.reshape(-1).to(torch.int64)).view(-1, len(DIGITS))
    texts = torch.full(
        (content.shape[0], UUID_TEXT_BYTES), ord("-"), dtype=torch.uint8, device=content.device
    )
    texts[:, torch.tensor(DIGITS, device=content.device)] = digits
    return texts
