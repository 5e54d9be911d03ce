//! The binary form of statistics in files: integers of variable length, in a fixed order of fields.
//!
//! Equal statistics have equal bytes. A reader checks every length, sum and number before it uses
//! them, so bytes from elsewhere give statistics that the methods can use, or an error.

/// The bytes are no statistics of this version.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the statistics are damaged: {0}")]
pub struct DamagedStatistics(pub &'static str);

/// A value with a binary form.
pub(crate) trait Stored: Sized {
    /// Appends the value.
    fn store(&self, out: &mut Vec<u8>);

    /// Reads the next value.
    fn load(from: &mut StatisticsReader<'_>) -> Result<Self, DamagedStatistics>;
}

/// Largest count of values in one file. Sums of 65,536 files fit into 64 bits.
pub(crate) const LARGEST_COUNT: u64 = 1 << 47;

/// Appends an unsigned integer: seven bits a byte, the lowest first.
pub(crate) fn put(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// Appends a signed integer: small magnitudes take few bytes.
pub(crate) fn put_signed(out: &mut Vec<u8>, number: i64) {
    put(out, ((number << 1) ^ (number >> 63)) as u64);
}

/// The rest of the bytes that are read.
pub struct StatisticsReader<'a>(pub(crate) &'a [u8]);

impl StatisticsReader<'_> {
    /// Reads from the first byte on.
    pub(crate) fn new(bytes: &[u8]) -> StatisticsReader<'_> {
        StatisticsReader(bytes)
    }

    /// The next `count` bytes.
    pub(crate) fn take(&mut self, count: usize) -> Result<&[u8], DamagedStatistics> {
        let (taken, rest) = self
            .0
            .split_at_checked(count)
            .ok_or(DamagedStatistics("the bytes end early"))?;
        self.0 = rest;
        Ok(taken)
    }

    pub(crate) fn byte(&mut self) -> Result<u8, DamagedStatistics> {
        let (&first, rest) = self
            .0
            .split_first()
            .ok_or(DamagedStatistics("the bytes end early"))?;
        self.0 = rest;
        Ok(first)
    }

    pub(crate) fn number(&mut self) -> Result<u64, DamagedStatistics> {
        let mut number = 0;
        for place in 0..10 {
            let byte = self.byte()?;
            number |= u64::from(byte & 0x7f) << (7 * place);
            if byte < 0x80 {
                return Ok(number);
            }
        }
        Err(DamagedStatistics("a number has too many digits"))
    }

    pub(crate) fn signed(&mut self) -> Result<i64, DamagedStatistics> {
        let number = self.number()?;
        Ok((number >> 1) as i64 ^ -((number & 1) as i64))
    }

    /// A list of signed numbers. The caller has checked its length against the bytes.
    pub(crate) fn signed_list(&mut self, length: usize) -> Result<Vec<i64>, DamagedStatistics> {
        let mut list = vec![0; length];
        let read = octet_kernels::read_signed(self.0, &mut list);
        let read = read.ok_or(DamagedStatistics("a list of numbers is not complete"))?;
        self.take(read)?;
        Ok(list)
    }

    /// A count of values.
    pub(crate) fn count(&mut self) -> Result<u64, DamagedStatistics> {
        match self.number()? {
            count @ ..LARGEST_COUNT => Ok(count),
            _ => Err(DamagedStatistics("a count is too large")),
        }
    }

    /// The length of a list whose elements take at least `least` bytes each.
    pub(crate) fn length(&mut self, least: usize) -> Result<usize, DamagedStatistics> {
        let length = usize::try_from(self.number()?).unwrap_or(usize::MAX);
        match length.checked_mul(least) {
            Some(bytes) if bytes <= self.0.len() => Ok(length),
            _ => Err(DamagedStatistics("a list is longer than the bytes")),
        }
    }

    pub(crate) fn flag(&mut self) -> Result<bool, DamagedStatistics> {
        match self.byte()? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(DamagedStatistics("a flag is neither 0 nor 1")),
        }
    }

    pub(crate) fn float(&mut self) -> Result<f32, DamagedStatistics> {
        let mut bytes = [0; 4];
        bytes.copy_from_slice(self.take(4)?);
        Ok(f32::from_le_bytes(bytes))
    }

    pub(crate) fn finite(&mut self) -> Result<f32, DamagedStatistics> {
        let number = self.float()?;
        match number.is_finite() {
            true => Ok(number),
            false => Err(DamagedStatistics("an end is not finite")),
        }
    }

    pub(crate) fn text(&mut self) -> Result<String, DamagedStatistics> {
        let length = self.length(1)?;
        let bytes = self.take(length)?.to_vec();
        String::from_utf8(bytes).map_err(|_| DamagedStatistics("a name is not UTF-8"))
    }

    /// Fails if bytes are left.
    pub(crate) fn end(self) -> Result<(), DamagedStatistics> {
        match self.0.is_empty() {
            true => Ok(()),
            false => Err(DamagedStatistics("bytes follow the end")),
        }
    }
}

impl Stored for f32 {
    fn store(&self, out: &mut Vec<u8>) {
        out.extend(self.to_le_bytes());
    }

    fn load(from: &mut StatisticsReader<'_>) -> Result<f32, DamagedStatistics> {
        from.float()
    }
}

impl Stored for u64 {
    fn store(&self, out: &mut Vec<u8>) {
        put(out, *self);
    }

    fn load(from: &mut StatisticsReader<'_>) -> Result<u64, DamagedStatistics> {
        from.count()
    }
}

impl Stored for i64 {
    fn store(&self, out: &mut Vec<u8>) {
        put_signed(out, *self);
    }

    fn load(from: &mut StatisticsReader<'_>) -> Result<i64, DamagedStatistics> {
        from.signed()
    }
}

/// Both halves of 64 bits; the upper one is small for small magnitudes.
impl Stored for i128 {
    fn store(&self, out: &mut Vec<u8>) {
        out.extend((*self as u64).to_le_bytes());
        put_signed(out, (*self >> 64) as i64);
    }

    fn load(from: &mut StatisticsReader<'_>) -> Result<i128, DamagedStatistics> {
        let mut low = [0; 8];
        low.copy_from_slice(from.take(8)?);
        let high = from.signed()?;
        // Sums of 65,536 files fit into 128 bits.
        match high.unsigned_abs() < LARGEST_COUNT {
            true => Ok(i128::from(high) << 64 | i128::from(u64::from_le_bytes(low))),
            false => Err(DamagedStatistics("a sum is too large")),
        }
    }
}

impl<T: Stored> Stored for Vec<T> {
    fn store(&self, out: &mut Vec<u8>) {
        put(out, self.len() as u64);
        self.iter().for_each(|element| element.store(out));
    }

    fn load(from: &mut StatisticsReader<'_>) -> Result<Vec<T>, DamagedStatistics> {
        let length = from.length(1)?;
        (0..length).map(|_| T::load(from)).collect()
    }
}

impl<T: Stored> Stored for Option<T> {
    fn store(&self, out: &mut Vec<u8>) {
        out.push(self.is_some().into());
        if let Some(value) = self {
            value.store(out);
        }
    }

    fn load(from: &mut StatisticsReader<'_>) -> Result<Option<T>, DamagedStatistics> {
        match from.flag()? {
            true => T::load(from).map(Some),
            false => Ok(None),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn again<T: Stored>(value: &T) -> T {
        let mut bytes = Vec::new();
        value.store(&mut bytes);
        let mut reader = StatisticsReader::new(&bytes);
        let read = T::load(&mut reader).unwrap();
        reader.end().unwrap();
        read
    }

    #[test]
    fn numbers_are_read_as_they_were_written() {
        for number in [0, 1, 127, 128, 1 << 40, LARGEST_COUNT - 1] {
            assert_eq!(again(&number), number);
        }
        for number in [0, -1, 1, 63, -64, 64, i64::MAX, i64::MIN] {
            assert_eq!(again(&number), number);
        }
        for number in [0, -1, 1, 1 << 64, -(1 << 64), (1 << 110) + 7, -(1 << 110)] {
            assert_eq!(again::<i128>(&number), number);
        }
        assert_eq!(again(&vec![Some(-0.0f32)])[0].unwrap().to_bits(), 1 << 31);
    }

    #[test]
    fn lengths_beyond_the_bytes_are_refused_before_memory_is_taken() {
        let mut bytes = Vec::new();
        put(&mut bytes, u64::MAX);
        let refused = Vec::<u64>::load(&mut StatisticsReader::new(&bytes));
        assert_eq!(
            refused.unwrap_err().to_string(),
            "the statistics are damaged: a list is longer than the bytes"
        );
        assert!(StatisticsReader::new(&[0x80; 11]).number().is_err());
        assert!(StatisticsReader::new(&[2]).flag().is_err());
    }
}
