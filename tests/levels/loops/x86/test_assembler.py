"""Encodings are those of an independent decoder and encoder, byte for byte."""

from hypothesis import given
from hypothesis import strategies as st
from iced_x86 import Code, Decoder, Encoder, Register

from planish.levels.loops.codegen.x86.assembler import JL, JLE, JNE, Assembler, Imm, Mem, Words, encode
from planish.levels.loops.codegen.x86.isa import Isa, isa_of
from planish.levels.loops.codegen.x86.pointers import GENERAL, RSP

ISAS = [isa_of(name, dtype) for name in ("avx512", "avx2") for dtype in ("float32", "float64")]
ARITHMETIC = ("add", "sub", "mul", "div", "max", "min")
NONE = int(Register.NONE)


@given(st.data())
def test_a_displacement_is_encoded_as_short_as_it_can_be(data: st.DataObject) -> None:
    isa = data.draw(st.sampled_from(ISAS))
    number = st.integers(0, isa.registers - 1).map(isa.vector)
    disp = data.draw(st.integers(-300, 300).map(lambda n: 16 * n) | st.integers(-(2**31), 2**31 - 1))
    index = data.draw(st.sampled_from([NONE, *GENERAL]))
    scale = data.draw(st.sampled_from([1, 2, 4, 8])) if index else 1
    broadcast = isa.wide and data.draw(st.booleans())
    memory = Mem(data.draw(st.sampled_from([*GENERAL, RSP])), disp, index, scale, broadcast)
    mask = data.draw(st.sampled_from([0, int(Register.K1), int(Register.K6)])) if isa.wide else 0
    code = data.draw(st.sampled_from([isa.forms.fma, *(isa.forms.functions[op] for op in ARITHMETIC)]))
    asm = Assembler()
    asm.emit(code, a := data.draw(number), b := data.draw(number), memory, mask=mask)
    decoder = Decoder(64, bytes(asm.code))
    seen = next(iter(decoder))
    assert decoder.ip == len(asm.code)
    assert (seen.code, seen.op0_register, seen.op1_register, seen.op_mask) == (code, a, b, mask)
    assert (seen.memory_base, seen.memory_index) == (memory.base, index)
    assert (seen.memory_index_scale, seen.is_broadcast) == (scale, broadcast)
    assert seen.memory_displacement == disp % 2**64
    encoder = Encoder(64)
    encoder.encode(seen, 0)
    assert encoder.take_buffer() == bytes(asm.code)


def _forms(isa: Isa, r: list[int], memory: Mem) -> list[Words]:
    """One instruction of each kind: registers first, then with memory as a source and as a destination."""
    f, v, x = isa.forms, isa.vector, isa.xmm
    index = isa.vector(r[2]) if isa.itemsize == 4 else (isa.ymm if isa.wide else isa.xmm)(r[2])
    many = memory._replace(offset=index, scale=isa.itemsize)
    return [
        (f.fma, v(r[0]), v(r[1]), v(r[2])),
        (f.fma, v(r[0]), v(r[1]), memory),
        (f.load, v(r[0]), v(r[1])),
        (f.load, v(r[0]), memory),
        (f.store, memory, v(r[0])),
        (f.broadcast, v(r[0]), memory),
        (f.load_scalar, x(r[0]), memory),
        (f.store_scalar, memory, x(r[0])),
        (f.functions_xmm["max"], x(r[0]), x(r[1]), x(r[2])),
        (f.permute, x(r[0]), x(r[1]), Imm(r[2])),
        (f.gather, v(r[0]), many) if isa.wide else (f.gather, v(r[0]), many, v(r[1])),
    ]


@given(st.data())
def test_a_decoder_reads_back_every_operand(data: st.DataObject) -> None:
    isa = data.draw(st.sampled_from(ISAS))
    registers = data.draw(st.permutations(range(isa.registers)))
    disp = data.draw(st.sampled_from([0, 4, 64, -128 * 64, 127 * 64, 128 * 64, 12, 65]))
    memory = Mem(data.draw(st.sampled_from([*GENERAL, RSP])), disp)
    words = data.draw(st.sampled_from(_forms(isa, registers, memory)))
    mask = int(Register.K3) if isa.wide else 0
    code = encode(words, mask)
    seen = next(iter(decoder := Decoder(64, code)))
    assert decoder.ip == len(code)
    assert (seen.code, seen.op_mask) == (words[0], mask)
    for n, word in enumerate(words[1:]):
        if isinstance(word, Mem):
            assert (seen.memory_base, seen.memory_index) == (word.base, word.offset)
            assert seen.memory_displacement == disp % 2**64
        else:
            assert word == ((seen.immediate(n),) if isinstance(word, Imm) else seen.op_register(n))
    encoder = Encoder(64)
    encoder.encode(seen, 0)
    assert encoder.take_buffer() == code


@given(st.sampled_from([JNE, JLE, JL]), st.integers(0, 200), st.integers(0, 200))
def test_jumps_arrive(condition: bytes, before: int, behind: int) -> None:
    asm = Assembler()
    asm.align(8)
    for _ in range(before):
        asm.emit(Code.NOPD)
    forward = asm.jump_forward(condition)
    asm.jump(condition, 0)
    for _ in range(behind):
        asm.emit(Code.NOPD)
    asm.land(forward)
    jumps = [i for i in Decoder(64, bytes(asm.code)) if i.is_jcc_near]
    assert [i.near_branch_target for i in jumps] == [len(asm.code), 0]
