//! Places for runs: so many at once, and so many of one principal.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use switchboard_domain::Principal;

/// The places that there are.
pub(super) struct Places {
    most: usize,
    most_each: usize,
    taken: Mutex<Taken>,
}

#[derive(Default)]
struct Taken {
    all: usize,
    each: HashMap<Principal, usize>,
}

/// A place that is taken, given back when it is dropped.
pub(super) struct Place {
    places: Arc<Places>,
    of: Principal,
}

/// Why there is no place.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Full {
    /// All are taken.
    All,
    /// Those of the principal are.
    Each,
}

impl Places {
    pub(super) fn new(most: usize, most_each: usize) -> Arc<Self> {
        Arc::new(Self {
            most,
            most_each,
            taken: Mutex::default(),
        })
    }

    /// A place for one more run of this principal: looked for and taken in one.
    pub(super) fn take(self: &Arc<Self>, of: &Principal) -> Result<Place, Full> {
        let mut taken = self.taken();
        let theirs = taken.each.get(of).copied().unwrap_or_default();
        if theirs >= self.most_each {
            return Err(Full::Each);
        }
        if taken.all >= self.most {
            return Err(Full::All);
        }
        taken.all += 1;
        taken.each.insert(of.clone(), theirs + 1);
        Ok(Place {
            places: Arc::clone(self),
            of: of.clone(),
        })
    }

    fn taken(&self) -> MutexGuard<'_, Taken> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut taken = self.places.taken();
        taken.all = taken.all.saturating_sub(1);
        if let Some(theirs) = taken.each.get_mut(&self.of) {
            *theirs = theirs.saturating_sub(1);
            if *theirs == 0 {
                // Principals come and go; the map is as large as the number of those at work.
                taken.each.remove(&self.of);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;

    use super::*;

    fn person(user: &str) -> Principal {
        Principal {
            tenant: String::new(),
            user: user.to_owned(),
        }
    }

    #[test]
    fn of_many_who_come_at_once_no_more_are_let_in_than_there_are_places() {
        const AT_ONCE: usize = 32;
        let places = Places::new(6, 4);
        let all_are_there = Barrier::new(AT_ONCE);
        let come = |user: &str| {
            all_are_there.wait();
            places.take(&person(user))
        };
        let (let_in, turned_away): (Vec<_>, Vec<_>) = std::thread::scope(|threads| {
            let come = &come;
            let those: Vec<_> = (0..AT_ONCE)
                .map(|n| threads.spawn(move || come(if n % 2 == 0 { "ann" } else { "bob" })))
                .collect();
            let answers = those.into_iter().map(|it| it.join().unwrap());
            answers.partition(Result::is_ok)
        });
        assert_eq!((let_in.len(), turned_away.len()), (6, AT_ONCE - 6));
        let each = |user: &str| {
            let places = let_in.iter().flatten();
            places.filter(|place| place.of == person(user)).count()
        };
        assert!(each("ann") <= 4 && each("bob") <= 4);
        drop(let_in);
        assert!(places.taken().each.is_empty() && places.taken().all == 0);
    }

    #[test]
    fn a_place_is_there_again_once_it_is_given_back() {
        let places = Places::new(3, 2);
        let (ann, bob) = (person("ann"), person("bob"));
        let first = places.take(&ann).ok();
        let second = places.take(&ann).ok();
        assert!(first.is_some() && second.is_some());
        assert_eq!(places.take(&ann).err(), Some(Full::Each));
        let third = places.take(&bob).ok();
        assert!(third.is_some());
        assert_eq!(places.take(&bob).err(), Some(Full::All));
        drop(first);
        assert!(places.take(&ann).is_ok());
        assert_eq!(Places::new(0, 1).take(&ann).err(), Some(Full::All));
    }
}
