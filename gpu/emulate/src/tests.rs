//! Small kernels: what they compute, and what they are refused.

use crate::block::Launch;
use crate::decode::decode;
use crate::half::{from_bf16, to_bf16, to_f16};
use crate::launch::{Grid, run};
use crate::memory::{Allocations, allocate, free};
use crate::ptx::entries;

/// Runs a kernel `(.param .u64 out)` over so many units and gives what it left in its buffer.
fn launch(body: &str, units: u32, buffer: &[u32]) -> Result<Vec<u32>, String> {
    let text = format!(
        ".version 8.8\n.target sm_90a\n.address_size 64\n.extern .shared .align 16 .b8 cube_shared[];\n\
         .visible .entry kernel(.param .u64 .ptr .global .align 1 kernel_param_0)\n{{\n{body}\n}}"
    );
    let entry = entries(&text)?.pop().expect("one kernel");
    let kernel = decode(&entry)?;
    let address = allocate(size_of_val(buffer), true).expect("little memory");
    // SAFETY: as long as the buffer, and freed below.
    unsafe { (address as *mut u32).copy_from_nonoverlapping(buffer.as_ptr(), buffer.len()) };
    let grid = Grid { blocks: [1, 1, 1], block: [units, 1, 1], dynamic_shared_bytes: 4096 };
    let parameters = address.to_le_bytes().to_vec();
    let outcome = run(&Launch { kernel: &kernel, grid, parameters, allocations: Allocations::now() });
    // SAFETY: as above.
    let after = unsafe { std::slice::from_raw_parts(address as *const u32, buffer.len()) }.to_vec();
    assert!(free(address));
    outcome.map(|()| after)
}

/// Each unit's own place in the buffer, and its number.
const START: &str = "
    ld.param.b64 %rd1, [kernel_param_0];
    mov.u32 %r1, %tid.x;
    mul.wide.u32 %rd2, %r1, 4;
    add.s64 %rd3, %rd1, %rd2;";

fn after_start(body: &str, units: u32, buffer: &[u32]) -> Result<Vec<u32>, String> {
    launch(&format!("{START}\n{body}"), units, buffer)
}

#[test]
fn units_part_and_meet_again() {
    // Odd units count their number down in a loop; then all exchange with their neighbour.
    let body = "
        and.b32 %r2, %r1, 1;
        setp.eq.b32 %p1, %r2, 0;
        mov.b32 %r3, 0;
        mov.b32 %r4, %r1;
        @%p1 bra $done;
    $again:
        add.s32 %r3, %r3, 10;
        sub.s32 %r4, %r4, 1;
        setp.ne.b32 %p2, %r4, 0;
        @%p2 bra $again;
    $done:
        shfl.sync.bfly.b32 %r5, %r3, 1, 31, -1;
        st.global.b32 [%rd3], %r5;
        ret;";
    let expected: Vec<u32> = (0..32u32).map(|unit| if unit % 2 == 0 { (unit + 1) * 10 } else { 0 }).collect();
    assert_eq!(after_start(body, 32, &[0; 32]), Ok(expected));
}

/// The place where they meet may lie before the one where they part.
#[test]
fn units_meet_at_an_earlier_place() {
    let body = "
        mov.b32 %r3, 0;
        mov.b32 %r4, %r1;
        bra.uni $again;
    $done:
        bar.warp.sync -1;
        activemask.b32 %r6;
        st.global.b32 [%rd3], %r6;
        ret;
    $again:
        add.s32 %r3, %r3, 10;
        setp.eq.b32 %p2, %r4, 0;
        @%p2 bra $done;
        sub.s32 %r4, %r4, 1;
        bra.uni $again;";
    assert_eq!(after_start(body, 32, &[0; 32]), Ok(vec![u32::MAX; 32]));
}

#[test]
fn a_barrier_orders_shared_memory_and_without_it_there_is_a_race() {
    // Each unit of two warps writes its number and reads that of the unit across.
    let body = |barrier: &str| {
        format!(
            "mov.b64 %rd4, cube_shared;
             add.s64 %rd5, %rd4, %rd2;
             st.shared.b32 [%rd5], %r1;
             {barrier}
             xor.b32 %r2, %r1, 32;
             mul.wide.u32 %rd6, %r2, 4;
             add.s64 %rd7, %rd4, %rd6;
             ld.shared.b32 %r3, [%rd7];
             st.global.b32 [%rd3], %r3;"
        )
    };
    let expected: Vec<u32> = (0..64).map(|unit| unit ^ 32).collect();
    assert_eq!(after_start(&body("bar.sync 0;"), 64, &[0; 64]), Ok(expected));
    for barrier in ["", "bar.warp.sync -1;"] {
        let error = after_start(&body(barrier), 64, &[0; 64]).expect_err("a race");
        assert!(error.contains("race: unit"), "{error}");
    }
}

#[test]
fn units_of_one_warp_need_a_barrier_too() {
    let body = |barrier: &str| {
        format!(
            "mov.b64 %rd4, cube_shared;
             add.s64 %rd5, %rd4, %rd2;
             st.shared.b32 [%rd5], %r1;
             {barrier}
             ld.shared.b32 %r3, [cube_shared+4];
             st.global.b32 [%rd3], %r3;"
        )
    };
    assert_eq!(after_start(&body("bar.warp.sync -1;"), 32, &[0; 32]), Ok(vec![1; 32]));
    assert!(after_start(&body(""), 32, &[0; 32]).expect_err("a race").contains("race: unit"));
}

#[test]
fn what_a_kernel_may_not_do_is_an_error_that_says_where() {
    let cases = [
        ("st.global.b32 [%rd3+1024], %r1;", "was never allocated"),
        ("ld.global.b32 %r2, [%rd3+2];", "isn't a multiple of the 4 bytes"),
        ("ld.shared.b32 %r2, [cube_shared+4096];", "is past the 4096 bytes there are"),
        (
            "setp.lt.u32 %p1, %r1, 5; @%p1 bra $out; bar.sync 0; $out: ret;",
            "units 0xffffffe0 reach the barrier, of 0xffffffff",
        ),
        ("setp.lt.u32 %p1, %r1, 5; @%p1 bar.sync 0;", "units 0x1f reach the barrier, of 0xffffffff"),
        (
            "setp.lt.u32 %p1, %r1, 5; @%p1 ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r2}, [cube_shared];",
            "all 32 units must take part",
        ),
        ("setp.lt.u32 %p1, %r1, 5; @%p1 bar.warp.sync -1;", "units 0xffffffff must take part, but 0x1f do"),
        ("frobnicate.b32 %r2, %r1;", "instruction not supported: `frobnicate.b32 %r2, %r1`"),
    ];
    for (body, expected) in cases {
        let error = after_start(body, 32, &[0; 32]).expect_err(body);
        assert!(error.contains(expected), "{body}: {error}");
    }
}

#[test]
fn fresh_shared_memory_is_nan() {
    let body = "ld.shared.b32 %r2, [cube_shared]; add.f32 %r3, %r2, 0f3F800000; st.global.b32 [%rd3], %r3;";
    let after = after_start(body, 1, &[0]).expect("allowed");
    assert!(f32::from_bits(after[0]).is_nan());
}

#[test]
fn arithmetic_is_that_of_the_manual() {
    let (one, minus) = (1.0f32.to_bits(), (-2.5f32).to_bits());
    let cases = [
        ("shr.s32 %r2, -8, 1;", -4i32 as u32),
        ("shr.s32 %r2, -8, 40;", u32::MAX),
        ("shl.b32 %r2, 1, 32;", 0),
        ("mul.hi.u32 %r2, -1, -1;", 0xffff_fffe),
        ("bfe.u32 %r2, 0xabcd, 4, 8;", 0xbc),
        ("mul.wide.u16 %r2, 0xffff, 2;", 0x1_fffe),
        ("mov.b32 {%rs1, %rs2}, 0x12345678; mov.b32 %r2, {%rs2, %rs1};", 0x5678_1234),
        ("cvt.rn.f32.s32 %r2, -3;", (-3.0f32).to_bits()),
        ("cvt.rzi.s32.f32 %r2, 0fC0200000;", -2i32 as u32),
        ("cvt.rni.s32.f32 %r2, 0fC0200000;", -2i32 as u32),
        ("cvt.rmi.s32.f32 %r2, 0fC0200000;", -3i32 as u32),
        ("cvt.sat.f32.f32 %r2, 0f7FC00000;", 0),
        ("cvt.rn.bf16x2.f32 %r2, 0f3F800000, 0fC0200000;", 0x3f80_c020),
        ("fma.rn.f32 %r2, 0f3F800000, 0fC0200000, 0f3F800000;", (-1.5f32).to_bits()),
        // 1 + 2^-24 lies between 1 and the next number.
        ("fma.rm.f32 %r2, 0f33800000, 0f3F800000, 0f3F800000;", one),
        ("fma.rm.f32 %r2, 0f33800000, 0fBF800000, 0fBF800000;", (-1.0f32).next_down().to_bits()),
        ("max.f32 %r2, 0f7FC00000, 0fC0200000;", minus),
        ("setp.neu.f32 %p1, 0f7FC00000, 0f7FC00000; selp.b32 %r2, 1, 0, %p1;", 1),
        ("setp.lt.f32 %p1, 0f7FC00000, 0f3F800000; selp.b32 %r2, 1, 0, %p1;", 0),
        ("setp.lt.s32 %p1, -1, 1; selp.b32 %r2, 1, 0, %p1;", 1),
        ("setp.lt.u32 %p1, -1, 1; selp.b32 %r2, 1, 0, %p1;", 0),
        ("ex2.approx.ftz.f32 %r2, 0f40400000;", 8.0f32.to_bits()),
        ("prmt.b32 %r2, 0x44332211, 0x88776655, 0x7410;", 0x8855_2211),
    ];
    for (body, expected) in cases {
        let after = after_start(&format!("{body} st.global.b32 [%rd3], %r2;"), 1, &[0]);
        assert_eq!(after.expect(body)[0], expected, "{body}");
    }
}

#[test]
fn atomics_add_up() {
    assert_eq!(after_start("atom.global.add.u32 %r2, [%rd1], %r1;", 64, &[5; 64]).expect("allowed")[0], 5 + 63 * 32);
}

/// Small whole numbers, so that products are exact.
fn entry(row: usize, column: usize) -> f32 {
    ((row * 7 + column * 3) % 11) as f32 - 5.0
}

/// Two matrices `[16, 16]` of bf16, one after another.
fn operands() -> Vec<u32> {
    let half = |place: usize| to_bf16(f64::from(entry(place / 16, place % 16)));
    (0..256).map(|pair| u32::from(half(2 * pair)) | u32::from(half(2 * pair + 1)) << 16).collect()
}

#[test]
fn a_product_of_whole_fragments_is_that_of_the_matrices() {
    // The second operand is column-major, and the product row-major over both.
    let body = "
        wmma.load.a.sync.aligned.row.m16n16k16.global.bf16 {%r10, %r11, %r12, %r13}, [%rd1], 16;
        wmma.load.b.sync.aligned.col.m16n16k16.global.bf16 {%r20, %r21, %r22, %r23}, [%rd1+512], 16;
        mov.b32 %r30, 0f3F800000;
        wmma.mma.sync.aligned.row.col.m16n16k16.f32.bf16.bf16.f32
            {%r40, %r41, %r42, %r43, %r44, %r45, %r46, %r47}, {%r10, %r11, %r12, %r13}, {%r20, %r21, %r22, %r23},
            {%r30, %r30, %r30, %r30, %r30, %r30, %r30, %r30};
        wmma.store.d.sync.aligned.row.m16n16k16.global.f32
            [%rd1], {%r40, %r41, %r42, %r43, %r44, %r45, %r46, %r47}, 16;";
    let after = after_start(body, 32, &operands()).expect("allowed");
    for (place, &bits) in after.iter().enumerate() {
        let (row, column) = (place / 16, place % 16);
        // Column `column` of the second is its row `16 + column` as it lies.
        let sum: f32 = (0..16).map(|k| entry(row, k) * entry(16 + column, k)).sum();
        assert_eq!(f32::from_bits(bits), sum + 1.0, "[{row}, {column}]");
    }
}

#[test]
fn a_product_of_documented_fragments_is_that_of_the_matrices() {
    // As kernels do it: tiles out of shared memory by ldmatrix, transposed where the other operand is row-major.
    let copy = "
        mov.b64 %rd4, cube_shared;
        mov.b32 %r2, %r1;
    $again:
        mul.wide.u32 %rd5, %r2, 4;
        add.s64 %rd6, %rd1, %rd5;
        ld.global.b32 %r3, [%rd6];
        add.s64 %rd7, %rd4, %rd5;
        st.shared.b32 [%rd7], %r3;
        add.s32 %r2, %r2, 32;
        setp.lt.u32 %p1, %r2, 256;
        @%p1 bra $again;
        bar.sync 0;
        and.b32 %r4, %r1, 15;
        shr.u32 %r5, %r1, 4;
        mul.lo.s32 %r6, %r4, 32;
        mad.lo.s32 %r7, %r5, 16, %r6;
        cvt.u64.u32 %rd8, %r7;
        add.s64 %rd9, %rd4, %rd8;
        ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r10, %r11, %r12, %r13}, [%rd9];
        ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%r20, %r21, %r22, %r23}, [%rd9+512];
        mov.b32 %r30, 0;
        mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32
            {%r40, %r41, %r42, %r43}, {%r10, %r11, %r12, %r13}, {%r20, %r21}, {%r30, %r30, %r30, %r30};
        mul.wide.u32 %rd10, %r1, 16;
        add.s64 %rd11, %rd1, %rd10;
        st.global.v4.b32 [%rd11], {%r40, %r41, %r42, %r43};";
    let after = after_start(copy, 32, &operands()).expect("allowed");
    for lane in 0..32 {
        for slot in 0..4 {
            let (row, column) = (lane / 4 + slot / 2 * 8, lane % 4 * 2 + slot % 2);
            let sum: f32 = (0..16).map(|k| entry(row, k) * entry(16 + k, column)).sum();
            assert_eq!(f32::from_bits(after[lane * 4 + slot]), sum, "[{row}, {column}]");
        }
    }
}

#[test]
fn sixteen_bit_arithmetic_rounds_once() {
    let third = to_f16(1.0 / 3.0);
    let body = format!(
        "mov.b16 %rs1, {third}; fma.rn.f16 %rs2, %rs1, %rs1, %rs1; cvt.u32.u16 %r2, %rs2; st.global.b32 [%rd3], %r2;"
    );
    let exact = f64::from(crate::half::from_f16(third));
    assert_eq!(after_start(&body, 1, &[0]).expect("allowed")[0], u32::from(to_f16(exact * exact + exact)));
    let body = "mov.b32 %r3, 0x3f804040; mul.bf16x2 %r2, %r3, %r3; st.global.b32 [%rd3], %r2;";
    let product = after_start(body, 1, &[0]).expect("allowed")[0];
    assert_eq!((from_bf16((product >> 16) as u16), from_bf16(product as u16)), (1.0, 9.0));
}
