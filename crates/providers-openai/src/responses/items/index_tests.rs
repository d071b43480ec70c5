use proptest::prelude::*;

use super::*;

const TYPES: [ItemType; 2] = [ItemType::Message, ItemType::Call];

#[derive(Debug, Clone)]
struct Known {
    item_type: ItemType,
    id: Option<&'static str>,
    index: Option<u64>,
    complete: bool,
}

fn any_address() -> impl Strategy<Value = (ItemType, Option<&'static str>, Option<u64>)> {
    let id = prop::option::of(prop::sample::select(vec!["a", "b"]));
    let item_type = prop::sample::select(TYPES.to_vec());
    (item_type, id, prop::option::of(0..2_u64))
}

/// Returns the open item of an event by a linear search.
fn search(list: &[Known], address: ItemAddress<'_>, item_type: ItemType) -> Option<usize> {
    let open = |item: &Known| !item.complete && item.item_type == item_type;
    let by_id = |item: &Known| address.id.is_some() && item.id == address.id && open(item);
    let by_index =
        |item: &Known| address.index.is_some() && item.index == address.index && open(item);
    let current = |item: &Known| {
        let without_id = address.id.is_none() || item.id.is_none();
        let without_index = address.index.is_none() || item.index.is_none();
        open(item) && without_index && (without_id || address.index.is_none())
    };
    list.iter()
        .rposition(by_id)
        .or_else(|| list.iter().rposition(by_index))
        .or_else(|| list.iter().rposition(current))
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_index_agrees_with_a_linear_search(
        steps in prop::collection::vec((any_address(), any::<bool>()), 0..24),
    ) {
        let (mut list, mut positions) = (Vec::<Known>::new(), ItemIndex::default());
        for ((item_type, id, index), starts) in steps {
            let address = ItemAddress { id, index };
            let expected = search(&list, address, item_type);
            prop_assert_eq!(positions.find(address, item_type), expected);
            let same = |it: &Known| id.is_some() && it.id == id && it.index == index;
            let is_open = list.iter().any(|it| same(it) && !it.complete);
            prop_assert_eq!(positions.is_open(address), is_open);
            let is_complete = list.iter().any(|it| same(it) && it.complete && it.item_type == item_type);
            prop_assert_eq!(positions.is_complete(address, item_type), is_complete);
            match expected {
                Some(at) if !starts => {
                    let known = &mut list[at];
                    known.complete = true;
                    let address = ItemAddress { id: known.id, index: known.index };
                    positions.complete(at, known.item_type, address);
                }
                _ => {
                    positions.insert(list.len(), item_type, address);
                    list.push(Known { item_type, id, index, complete: false });
                }
            }
        }
    }
}
