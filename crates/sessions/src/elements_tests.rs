use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

fn cut(pieces: &[&[u8]]) -> Result<(Vec<String>, bool), ImportError> {
    let mut elements = Elements::new();
    let mut found = Vec::new();
    for piece in pieces {
        elements.feed(piece, &mut found)?;
    }
    Ok((found, elements.is_complete()))
}

#[test]
fn what_is_no_array_of_objects_is_refused() {
    for text in [
        "{}", "[1]", "[{},]", "[{}{}]", "[]x", "null", "[[]]", "[{}]]",
    ] {
        assert!(cut(&[text.as_bytes()]).is_err(), "{text}");
    }
    assert!(cut(&[b"[{\"\xff\":1}]"]).is_err());
    for text in ["", "[", "[{}", "[{},", "[{\"]\":"] {
        let (_, complete) = cut(&[text.as_bytes()]).unwrap();
        assert!(!complete, "{text}");
    }
    assert_eq!(cut(&[b" [ ] "]).unwrap(), (vec![], true));
}

fn json_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<i64>().prop_map(Value::from),
        "[\\PC\"\\\\\\[\\]{},]{0,12}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec(("[\"{}\\\\a]{0,4}", inner), 0..4)
                .prop_map(|fields| fields.into_iter().collect::<serde_json::Map<_, _>>().into()),
        ]
    })
}

proptest! {
    #[test]
    fn the_elements_are_those_of_a_parser(
        values in prop::collection::vec(json_value(), 0..6),
        pretty in any::<bool>(),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..6),
    ) {
        let values: Vec<Value> = values.into_iter().map(|value| json!({ "it": value })).collect();
        let text = if pretty {
            serde_json::to_string_pretty(&values).unwrap()
        } else {
            serde_json::to_string(&values).unwrap()
        };
        let bytes = text.as_bytes();
        let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.index(bytes.len() + 1)).collect();
        cuts.extend([0, bytes.len()]);
        cuts.sort_unstable();
        let pieces: Vec<&[u8]> = cuts.windows(2).map(|cut| &bytes[cut[0]..cut[1]]).collect();
        let (found, complete) = cut(&pieces).unwrap();
        prop_assert!(complete);
        let found: Vec<Value> = found.iter().map(|text| serde_json::from_str(text).unwrap()).collect();
        prop_assert_eq!(found, values);
    }

    #[test]
    fn nothing_panics(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
        let _ = cut(&[&bytes]);
    }
}
