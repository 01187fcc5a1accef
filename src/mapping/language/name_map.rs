//! Values by name, for names that only the mapping chooses. Most lookups are for a name that is not there, which one bit
//! shows without comparing texts.

/// The entries are sorted by the bit of their name.
#[derive(Clone, Debug)]
pub struct NameMap<T> {
    entries: Vec<(Box<str>, T)>,
    /// A bit for each name, see [`name_bit`].
    bits: u64,
    /// For each bit that is set, in order: where its entries end.
    ends: Vec<usize>,
}

impl<T> Default for NameMap<T> {
    fn default() -> NameMap<T> {
        NameMap { entries: Vec::new(), bits: 0, ends: Vec::new() }
    }
}

/// One of 64 bits for a name, by its length and its first byte.
#[inline]
pub fn name_bit(name: &str) -> u64 {
    let first = name.as_bytes().first().copied().unwrap_or_default();
    1 << ((name.len() * 7 + usize::from(first)) % 64)
}

impl<T> NameMap<T> {
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    #[inline]
    pub fn get(&self, name: &str) -> Option<&T> {
        let bit = name_bit(name);
        if self.bits & bit == 0 {
            return None;
        }
        let (_, found) = self.of_bit(bit).iter().find(|(known, _)| **known == *name)?;
        Some(found)
    }

    pub fn contains(&self, name: &str) -> bool {
        self.get(name).is_some()
    }

    pub fn iter(&self) -> impl Iterator<Item = (&str, &T)> {
        self.entries.iter().map(|(name, value)| (&**name, value))
    }

    pub fn values(&self) -> impl Iterator<Item = &T> {
        self.entries.iter().map(|(_, value)| value)
    }

    fn of_bit(&self, bit: u64) -> &[(Box<str>, T)] {
        let rank = (self.bits & (bit - 1)).count_ones() as usize;
        let start = rank.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.entries[start..self.ends[rank]]
    }
}

impl<T: Default> NameMap<T> {
    /// The value of a name, which is added if it is new.
    pub fn entry(&mut self, name: &str) -> &mut T {
        let at = self.entries.iter().position(|(known, _)| **known == *name).unwrap_or_else(|| self.add(name));
        &mut self.entries[at].1
    }

    fn add(&mut self, name: &str) -> usize {
        let bit = name_bit(name);
        let at = self.entries.iter().position(|(known, _)| name_bit(known) > bit).unwrap_or(self.entries.len());
        self.entries.insert(at, (name.into(), T::default()));
        self.bits |= bit;
        let bits = || self.entries.iter().map(|(known, _)| name_bit(known));
        self.ends = (1..=self.entries.len()).filter(|end| bits().nth(end - 1) != bits().nth(*end)).collect();
        at
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_found_among_those_with_the_same_bit() {
        let mut map = NameMap::<usize>::default();
        let names: Vec<String> = (0..200).map(|number| format!("n{number}")).collect();
        for (at, name) in names.iter().enumerate() {
            *map.entry(name) = at;
            assert_eq!([map.get(""), map.get("n"), map.get("n200")], [None; 3]);
            assert!(names[..=at].iter().enumerate().all(|(at, name)| map.get(name) == Some(&at)), "{at}");
        }
        *map.entry("n7") = 1_000;
        assert_eq!((map.get("n7"), map.values().count()), (Some(&1_000), 200));
    }
}
