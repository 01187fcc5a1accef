//! Finds the bytes that are special in JSON strings, many at a time: most strings have none.

const ONES: u64 = u64::from_ne_bytes([1; 8]);
const HIGH_BITS: u64 = ONES << 7;

/// The position of the first quote, backslash or control character; the length if there is none.
pub(crate) fn first_special(bytes: &[u8]) -> usize {
    let (blocks, rest) = bytes.as_chunks::<16>();
    for (at, block) in blocks.iter().enumerate() {
        let found = special_in_block(block);
        if found != 0 {
            return at * 16 + found.trailing_zeros() as usize / 8;
        }
    }
    // The last bytes at once: those before the rest are not special.
    if let Some(last) = bytes.last_chunk::<16>() {
        let found = if rest.is_empty() { 0 } else { special_in_block(last) };
        return if found == 0 { bytes.len() } else { bytes.len() - 16 + found.trailing_zeros() as usize / 8 };
    }
    if let (Some(first), Some(last)) = (bytes.first_chunk::<8>(), bytes.last_chunk::<8>()) {
        let found = special_bits(u64::from_le_bytes(*first));
        if found != 0 {
            return found.trailing_zeros() as usize / 8;
        }
        let found = special_bits(u64::from_le_bytes(*last));
        return if found == 0 { bytes.len() } else { bytes.len() - 8 + found.trailing_zeros() as usize / 8 };
    }
    let special = |byte: &u8| *byte == b'"' || *byte == b'\\' || *byte < 0x20;
    bytes.iter().position(special).unwrap_or(bytes.len())
}

/// A byte that is not 0 for each special one. The compiler makes vector instructions of this loop.
#[inline]
fn special_in_block(block: &[u8; 16]) -> u128 {
    let mut special = [0_u8; 16];
    let mut at = 0;
    while at < 16 {
        let byte = block[at];
        let is_quote = if byte == b'"' { 0xFF } else { 0 };
        let is_backslash = if byte == b'\\' { 0xFF } else { 0 };
        let is_control = if byte < 0x20 { 0xFF } else { 0 };
        special[at] = is_quote | is_backslash | is_control;
        at += 1;
    }
    u128::from_le_bytes(special)
}

/// The high bit of each special byte. Only the lowest is exact: a borrow may set higher ones, too.
fn special_bits(word: u64) -> u64 {
    let zeros = |word: u64| word.wrapping_sub(ONES) & !word;
    let quotes = zeros(word ^ (ONES * b'"' as u64));
    let backslashes = zeros(word ^ (ONES * b'\\' as u64));
    let controls = word.wrapping_sub(ONES * 0x20) & !word;
    (quotes | backslashes | controls) & HIGH_BITS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_special_byte_is_found_at_every_position_among_all_others() {
        for special in 0..=255_u8 {
            for length in 0..40 {
                for at in 0..length {
                    let mut bytes = vec![if special % 2 == 0 { b' ' } else { 0xFF }; length];
                    bytes[at] = special;
                    let is_special = special < 0x20 || special == b'"' || special == b'\\';
                    assert_eq!(first_special(&bytes), if is_special { at } else { length }, "{special} at {at}");
                    // Another one after it changes nothing.
                    bytes[length - 1] = if at == length - 1 { special } else { b'"' };
                    let first = if is_special || at == length - 1 { at } else { length - 1 };
                    let expected = if is_special || at != length - 1 { first } else { length };
                    assert_eq!(first_special(&bytes), expected, "{special} at {at} of {length}");
                }
            }
        }
    }
}
