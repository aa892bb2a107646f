"""RopeOperation, RopeQConcatOperation and DynamicNTKOperation against transformers."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")
glm = pytest.importorskip("transformers.models.glm.modeling_glm")
llama = pytest.importorskip("transformers.models.llama.modeling_llama")

from golden_oracle import FLOATS, assert_agrees, assert_caught, assert_sound, golden, normal, whole
from mutants import mutants_of


def angles(tokens, width, dtype, interleaved=False, start=0):
    """Cosines and sines of each element of a head, as models pass them."""
    frequencies = 10000.0 ** (-torch.arange(0, width, 2, dtype=torch.float64) / width)
    theta = (torch.arange(tokens, dtype=torch.float64) + start)[:, None] * frequencies
    theta = theta.repeat_interleave(2, -1) if interleaved else torch.cat([theta, theta], -1)
    return theta.cos().to(FLOATS[dtype]), theta.sin().to(FLOATS[dtype])


def by_transformers(x, cos, sin, coefficient):
    """x is [tokens, heads, width]; everything in the type of x."""
    cos, sin = cos.to(x.dtype), sin.to(x.dtype)
    x = x.transpose(0, 1)[None]
    if coefficient == 2:
        out, _ = llama.apply_rotary_pos_emb(x, x, cos[None], sin[None])
    elif coefficient == 4:  # two positions of a two-dimensional embedding, one in each half
        parts = [
            llama.apply_rotary_pos_emb(a, a, c[None], s[None])[0]
            for a, c, s in zip(x.chunk(2, -1), cos.chunk(2, -1), sin.chunk(2, -1))
        ]
        out = torch.cat(parts, -1)
    else:  # it takes the first half of what it gets and doubles every value
        cos, sin = (torch.cat([t[:, ::2], t[:, ::2]], -1)[None] for t in (cos, sin))
        out, _ = glm.apply_rotary_pos_emb(x, x, cos, sin)
    return out[0].transpose(0, 1)


def rope(q, k, cos, sin, coefficient, lengths=None):
    lengths = torch.tensor([q.shape[0]], dtype=torch.int32) if lengths is None else lengths
    return golden.run("RopeOperation", {"rotaryCoeff": coefficient}, [q, k, cos, sin, lengths])


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("coefficient", [2, 4, "width"])
@pytest.mark.parametrize(("tokens", "heads", "kv_heads", "width"), [(5, 4, 4, 8), (3, 6, 2, 20), (1, 1, 1, 64)])
def test_rope(tokens, heads, kv_heads, width, coefficient, dtype):
    c = width if coefficient == "width" else coefficient
    q, k = normal(tokens, heads * width, dtype=dtype), normal(tokens, kv_heads * width, dtype=dtype, seed=1)
    cos, sin = angles(tokens, width, dtype, interleaved=coefficient == "width", start=7)
    for expected, x in zip(rope(q, k, cos, sin, c), (q, k)):
        by_heads = x.view(tokens, -1, width)
        assert_agrees(expected, by_transformers(by_heads.double(), cos, sin, c).reshape(x.shape))
        assert_sound(expected, by_transformers(by_heads.float(), cos, sin, c).to(x.dtype).reshape(x.shape))
        if dtype == "float16":  # kernels that multiply in float16
            assert_sound(expected, by_transformers(by_heads, cos, sin, c).reshape(x.shape))
            assert set(expected.forms) == {"rope in float32", "rope with products in float16"}
        else:
            assert not expected.forms


def test_batches_in_four_dimensions_count_on():
    q, k = normal(2, 3, 4, 8), normal(2, 3, 2, 8, seed=1)
    cos, sin = angles(6, 8, "float16")
    for expected, x in zip(rope(q, k, cos, sin, 2, torch.tensor([3, 3], dtype=torch.int32)), (q, k)):
        oracle = by_transformers(x.double().reshape(6, -1, 8), cos, sin, 2)
        assert_agrees(expected, oracle.reshape(x.shape))
    by_heads, _ = rope(q.view(6, 4, 8), k.view(6, 2, 8), cos, sin, 2)
    assert_agrees(by_heads, by_transformers(q.double().reshape(6, -1, 8), cos, sin, 2))


def test_a_rotation_keeps_the_length_of_pairs():
    q, k = normal(9, 64, dtype="float32"), normal(9, 64, dtype="float32", seed=1)
    cos, sin = angles(9, 16, "float32", interleaved=True)
    cos, sin = (t / (cos**2 + sin**2).sqrt() for t in (cos, sin))
    out, _ = rope(q, k, cos, sin, 16)
    before = np.linalg.norm(q.double().numpy().reshape(9, -1, 2), axis=-1)
    assert np.allclose(np.linalg.norm(out.values.reshape(9, -1, 2), axis=-1), before, rtol=1e-6)


@mutants_of("RopeOperation")
def wrong_ropes(trial):
    q, k = normal(6, 64, dtype="float16"), normal(6, 32, dtype="float16", seed=1)
    lengths = torch.tensor([6], dtype=torch.int32)
    for coefficient in (2, 4, 16):
        cos, sin = angles(6, 16, "float16", interleaved=coefficient == 16, start=3)
        expected, _ = trial.run({"rotaryCoeff": coefficient}, [q, k, cos, sin, lengths])
        x = q.float().view(6, 4, 16)

        def kernel(cos=cos, sin=sin, c=coefficient, x=x):
            return by_transformers(x, cos, sin, c).half().reshape(6, 64)

        def caught(name, result, expected=expected, c=coefficient):
            trial.caught(name if c == 2 else f"{name} (rotaryCoeff {c})", expected, result)

        trial.sound(expected, kernel())
        caught("turned the other way", kernel(sin=-sin))
        caught("the angles of the token before", kernel(cos=cos.roll(1, 0), sin=sin.roll(1, 0)))
        caught("other pairs", kernel(c=4 if coefficient == 2 else 2))
        if coefficient == 2:
            caught("heads in the wrong order", kernel(x=x.flip(1)))
            caught("the second term forgotten", (x * cos.float()[:, None]).half().reshape(6, 64))
            caught("the last token not turned", torch.cat([kernel()[:-1], q[-1:]]))
            brain = by_transformers(x.bfloat16(), cos, sin, 2).half().reshape(6, 64)
            caught("computed in bfloat16", brain)


@mutants_of("RopeQConcatOperation")
def wrong_rope_q_concats(trial):
    q, tail = normal(5, 24), normal(5, 3, 6, seed=1)
    cos, sin = angles(5, 8, "float16", start=3)
    (expected,) = trial.run({}, [q, cos, sin, tail])
    joined = lambda sin=sin, tail=tail: torch.cat(
        [by_transformers(q.float().view(5, 3, 8), cos, sin, 2), tail.float()], -1
    ).half()
    trial.sound(expected, joined())
    trial.caught("turned the other way", expected, joined(sin=-sin))
    trial.caught("the tail of another head", expected, joined(tail=tail.roll(1, 1)))
    trial.caught("the tail first", expected, joined().roll(6, -1))
    trial.caught("not turned", expected, torch.cat([q.view(5, 3, 8), tail], -1))


@mutants_of("DynamicNTKOperation")
def wrong_dynamic_ntks(trial):
    lengths, positions = [4, 0, 7], whole(0, 30000, 11, dtype=torch.int32)
    frequencies = normal(3, 16, dtype="float32", seed=1).abs()
    inputs = [positions, frequencies, torch.tensor(lengths, dtype=torch.int32)]
    sin, cos = trial.run({"outputType": 1}, inputs, outputs=[("float16", (11, 32))] * 2)

    own = np.repeat([0, 1, 2], lengths)

    def theta(rows=own, shift=0):
        half = (positions.numpy() + shift).astype(np.float32)[:, None] * frequencies.numpy()[rows]
        return np.concatenate([half, half], -1)

    half = lambda values: torch.tensor(values).half()
    trial.sound(sin, half(np.sin(theta())))
    trial.caught("sine and cosine swapped", sin, half(np.cos(theta())))
    trial.caught("the frequencies of the first sequence", cos, half(np.cos(theta(rows=np.zeros(11, int)))))
    interleaved = theta().reshape(11, 2, 16).transpose(0, 2, 1).reshape(11, 32)
    trial.caught("neighbours in place of halves", cos, half(np.cos(interleaved)))
    trial.caught("positions off by one", sin, half(np.sin(theta(shift=1))))


def test_angles_that_differ_in_a_pair_have_two_readings():
    q, k = normal(2, 8, dtype="float32"), normal(2, 8, dtype="float32", seed=1)
    cos, sin = normal(2, 8, dtype="float32", seed=2), normal(2, 8, dtype="float32", seed=3)
    expected, _ = rope(q, k, cos, sin, 8)
    pairs = q.double().view(2, 4, 2)
    crossed = torch.stack([-pairs[..., 1], pairs[..., 0]], -1).reshape(2, 8)
    assert_agrees(expected, q.double() * cos.double() + crossed * sin.double())
    even = [t[:, ::2].repeat_interleave(2, -1) for t in (cos, sin)]
    assert_sound(expected, q * even[0] + crossed.float() * even[1])
    assert set(expected.forms) == {"rope in float32", "rope with the angles of even elements"}


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_rope_q_concat(dtype):
    q, tail = normal(5, 3 * 8, dtype=dtype), normal(5, 3, 6, dtype=dtype, seed=1)
    cos, sin = angles(5, 8, dtype)
    for param in ({}, "null"):
        (expected,) = golden.run("RopeQConcatOperation", param, [q, cos, sin, tail])

    def joined(kind, sin=sin, tail=tail):
        return torch.cat([by_transformers(q.to(kind).view(5, 3, 8), cos, sin, 2), tail.to(kind)], -1)

    assert_agrees(expected, joined(torch.float64))
    assert_sound(expected, joined(torch.float32).to(q.dtype))
    if dtype == "float16":
        assert_sound(expected, joined(torch.float16))
    assert_caught(expected, joined(torch.float32, sin=-sin).to(q.dtype))
    assert_caught(expected, joined(torch.float32, tail=tail.roll(1, 1)).to(q.dtype))
    assert_caught(expected, torch.cat([tail, q.view(5, 3, 8)], -1))
    off = joined(torch.float32).to(q.dtype)
    off[2, 1, 9] *= 1 + 2 ** (-8 if dtype == "float16" else -6)  # what is only moved must not change
    assert_caught(expected, off)


@pytest.mark.parametrize(("dtype", "code"), [("float16", 1), ("bfloat16", 27)])
def test_dynamic_ntk(dtype, code):
    lengths = [4, 0, 7]
    positions = whole(0, 30000, 11, dtype=torch.int32)
    frequencies = normal(3, 16, dtype="float32", seed=1).abs()
    inputs = [positions, frequencies, torch.tensor(lengths, dtype=torch.int32)]
    outputs = [(dtype, (11, 32))] * 2
    sin, cos = golden.run("DynamicNTKOperation", {"outputType": code}, inputs, outputs=outputs)

    def theta(rows):
        half = positions.numpy().astype(np.float32)[:, None] * frequencies.numpy()[rows]
        return np.concatenate([half, half], -1)

    right = theta(np.repeat([0, 1, 2], lengths))
    assert_agrees(sin, np.sin(right.astype(float)))
    assert_agrees(cos, np.cos(right.astype(float)))
    for expected, function in ((sin, np.sin), (cos, np.cos)):
        kernel = torch.tensor(function(right)).to(FLOATS[dtype])
        assert_sound(expected, kernel, dtype)
        assert_caught(expected, torch.tensor(function(theta(np.zeros(11, int)))).to(FLOATS[dtype]), dtype)
        interleaved = right.reshape(11, 2, 16).transpose(0, 2, 1).reshape(11, 32)
        assert_caught(expected, torch.tensor(function(interleaved)).to(FLOATS[dtype]), dtype)
    assert_caught(sin, torch.tensor(np.cos(right)).to(FLOATS[dtype]), dtype)  # sine and cosine swapped


def test_what_cannot_be_computed_says_so():
    q, (cos, sin) = normal(4, 32), angles(4, 8, "float16")
    for inputs, coefficient, words in [
        ([q, q, cos, sin], 3, "rotaryCoeff 3"),
        ([q, q, cos, sin[:2]], 2, "cos has the shape .* and sin"),
        ([q, q, cos[:3], sin[:3]], 2, "cos has 3 rows for 4 tokens"),
        ([q, q[:3], cos, sin], 2, "query has 4 tokens and key 3"),
        ([q[:, :30].contiguous(), q, cos, sin], 2, "does not consist of heads of 8"),
        ([q.view(-1), q, cos, sin], 2, "not two to four dimensions"),
        ([q, q, cos[:, :5].contiguous(), sin[:, :5].contiguous()], 2, "cannot be cut into 2"),
        ([q, None, cos, sin], 2, r"input 1 \(key\) was not recorded"),
    ]:
        with pytest.raises(Exception, match=words):
            golden.run("RopeOperation", {"rotaryCoeff": coefficient}, inputs)
    with pytest.raises(Exception, match="concat has the shape"):
        golden.run("RopeQConcatOperation", {}, [q, cos, sin, normal(4, 5, 6)])
    ints, frequencies = whole(0, 9, 4, dtype=torch.int32), normal(2, 8, dtype="float32")
    for lengths, words in [
        (torch.tensor([1, 2], dtype=torch.int32), "seqLens do not add up to the 4 positions"),
        (torch.tensor([9, -5], dtype=torch.int32), "negative element -5"),
        (torch.tensor([-5, 9], dtype=torch.int32), "negative element -5"),
        (torch.tensor([4], dtype=torch.int32), "for 1 sequences"),
        (torch.tensor([2.0, float("nan")]), "not of whole numbers"),
    ]:
        with pytest.raises(Exception, match=words):
            golden.run("DynamicNTKOperation", {}, [ints, frequencies, lengths])
