use alto_exit::replay::{kendall, spearman};

fn close(found: Option<f64>, expected: f64) {
    let found = found.expect("something to rank");
    assert!((found - expected).abs() < 1e-12, "{found}, expected {expected}");
}

#[test]
fn both_are_what_the_textbook_says() {
    let (a, b) = ([1.0, 2.0, 3.0, 4.0], [0.1, 0.3, 0.2, 0.4]);
    // 1 - 6 * (0 + 1 + 1 + 0) / (4 * 15); five of six pairs alike, one not.
    close(spearman(&a, &b), 0.8);
    close(kendall(&a, &b), 4.0 / 6.0);
    close(spearman(&a, &a), 1.0);
    let backwards = [4.0, 3.0, 2.0, 1.0];
    close(spearman(&a, &backwards), -1.0);
    close(kendall(&a, &backwards), -1.0);
}

#[test]
fn equal_values_share_a_rank_and_leave_a_pair_without_order() {
    let (a, b) = ([1.0, 2.0, 2.0, 3.0], [1.0, 2.0, 3.0, 4.0]);
    // Ranks 1, 2.5, 2.5, 4: 4.5 / sqrt(4.5 * 5). Of six pairs a orders five.
    close(spearman(&a, &b), 4.5 / 22.5_f64.sqrt());
    close(kendall(&a, &b), 5.0 / 30.0_f64.sqrt());
    close(kendall(&b, &a), 5.0 / 30.0_f64.sqrt());
}

#[test]
fn what_is_not_finite_is_last_and_alike() {
    let broken = [f64::NAN, 1.0, f64::INFINITY, 2.0, f64::NEG_INFINITY];
    let plain = [9.0, 1.0, 9.0, 2.0, 9.0];
    close(spearman(&broken, &plain), 1.0);
    close(kendall(&broken, &plain), 1.0);
}

#[test]
fn nothing_to_rank_is_no_correlation() {
    for none in [&[][..], &[1.0], &[2.0, 2.0, 2.0], &[f64::NAN, f64::INFINITY]] {
        let rising: Vec<f64> = (0..none.len()).map(|value| value as f64).collect();
        assert_eq!((spearman(none, &rising), kendall(&rising, none)), (None, None), "{none:?}");
    }
}
