//! Which of two lists belong together.

/// Pairs as many of `ones` with `others` as can be, each with one that fits: what each of the ones is paired with.
/// The first ones and the first others come first where there is a choice.
pub(crate) fn pairs(
    ones: usize,
    others: usize,
    fits: impl Fn(usize, usize) -> bool,
) -> Vec<Option<usize>> {
    fn place(
        one: usize,
        others: usize,
        fits: &impl Fn(usize, usize) -> bool,
        of: &mut [Option<usize>],
        tried: &mut [bool],
    ) -> bool {
        for other in 0..others {
            if tried[other] || !fits(one, other) {
                continue;
            }
            tried[other] = true;
            let is_free = of[other].is_none_or(|before| place(before, others, fits, of, tried));
            if is_free {
                of[other] = Some(one);
                return true;
            }
        }
        false
    }
    let mut of = vec![None; others];
    for one in 0..ones {
        place(one, others, &fits, &mut of, &mut vec![false; others]);
    }
    let mut paired = vec![None; ones];
    for (other, one) in of.into_iter().enumerate() {
        if let Some(one) = one {
            paired[one] = Some(other);
        }
    }
    paired
}
