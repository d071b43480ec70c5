//! Format of the inputs: cut positions, followed by the content.

/// Upper bound, exclusive, of the number of cuts of one input.
const MAX_CUTS: u8 = 8;

/// Splits an input into its cut positions and its content.
///
/// ```text
/// count: u8, then (count % 8) positions of two bytes each (little endian), then the content
/// ```
///
/// A position counts modulo the length of the content, so that every position is valid. Positions
/// are sorted. Equal positions make an empty piece. An input that ends within its positions has
/// none.
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
