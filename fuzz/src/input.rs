//! An input is a few places to cut at, and what is to be cut.

/// Cuts at most, of one input.
const MAX_CUTS: u8 = 8;

/// The places that an input begins with, and the rest of it.
///
/// ```text
/// count: u8, then (count % 8) places of two bytes each (little endian), then what is cut
/// ```
///
/// A place counts modulo the length of the rest, so that each one means a cut. They come sorted;
/// two may be the same, which makes an empty piece. An input that ends within its places has none.
pub fn places(input: &[u8]) -> (Vec<usize>, &[u8]) {
    let Some((&count, rest)) = input.split_first() else {
        return (Vec::new(), input);
    };
    let Some((places, rest)) = rest.split_at_checked(2 * usize::from(count % MAX_CUTS)) else {
        return (Vec::new(), rest);
    };
    let (pairs, _) = places.as_chunks::<2>();
    let mut places: Vec<usize> = pairs
        .iter()
        .map(|&pair| usize::from(u16::from_le_bytes(pair)) % (rest.len() + 1))
        .collect();
    places.sort_unstable();
    (places, rest)
}

/// The beginning of an input that is cut at these places.
pub fn header(places: &[u16]) -> Vec<u8> {
    let count = u8::try_from(places.len()).unwrap_or(0) % MAX_CUTS;
    let places = places.iter().take(count.into());
    let bytes = places.flat_map(|place| place.to_le_bytes());
    [count].into_iter().chain(bytes).collect()
}
