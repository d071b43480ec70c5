use proptest::prelude::*;

use super::*;

const SORTS: [Sort; 2] = [Sort::Message, Sort::Call];

#[derive(Debug, Clone)]
struct Known {
    sort: Sort,
    id: Option<&'static str>,
    index: Option<u64>,
    done: bool,
}

fn any_address() -> impl Strategy<Value = (Sort, Option<&'static str>, Option<u64>)> {
    let id = prop::option::of(prop::sample::select(vec!["a", "b"]));
    let sort = prop::sample::select(SORTS.to_vec());
    (sort, id, prop::option::of(0..2_u64))
}

/// The item that an event is about, by looking at each.
fn sought(list: &[Known], address: Address<'_>, sort: Sort) -> Option<usize> {
    let open = |item: &Known| !item.done && item.sort == sort;
    let by_id = |item: &Known| address.id.is_some() && item.id == address.id && open(item);
    let by_index =
        |item: &Known| address.index.is_some() && item.index == address.index && open(item);
    let by_turn = |item: &Known| {
        let unnamed = address.id.is_none() || item.id.is_none();
        let unnumbered = address.index.is_none() || item.index.is_none();
        open(item) && unnumbered && (unnamed || address.index.is_none())
    };
    list.iter()
        .rposition(by_id)
        .or_else(|| list.iter().rposition(by_index))
        .or_else(|| list.iter().rposition(by_turn))
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_is_kept_says_the_same_as_a_search(
        steps in prop::collection::vec((any_address(), any::<bool>()), 0..24),
    ) {
        let (mut list, mut places) = (Vec::<Known>::new(), Places::default());
        for ((sort, id, index), begins) in steps {
            let address = Address { id, index };
            let expected = sought(&list, address, sort);
            prop_assert_eq!(places.find(address, sort), expected);
            let same = |it: &Known| id.is_some() && it.id == id && it.index == index;
            let has_begun = list.iter().any(|it| same(it) && !it.done);
            prop_assert_eq!(places.has_begun(address), has_begun);
            let is_done = list.iter().any(|it| same(it) && it.done && it.sort == sort);
            prop_assert_eq!(places.is_done(address, sort), is_done);
            match expected {
                Some(at) if !begins => {
                    let known = &mut list[at];
                    known.done = true;
                    let address = Address { id: known.id, index: known.index };
                    places.end(at, known.sort, address);
                }
                _ => {
                    places.begin(list.len(), sort, address);
                    list.push(Known { sort, id, index, done: false });
                }
            }
        }
    }
}
