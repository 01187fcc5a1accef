//! Encodes bodies chunk by chunk, so that each chunk can be decoded before the next arrives.

use std::io::{self, Write};

pub(super) enum Encoder {
    Gzip(flate2::write::GzEncoder<Vec<u8>>),
    Brotli(Box<brotli::CompressorWriter<Vec<u8>>>),
    Zstd(zstd::stream::write::Encoder<'static, Vec<u8>>),
}

impl Encoder {
    pub(super) fn gzip() -> Encoder {
        Encoder::Gzip(flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default()))
    }

    pub(super) fn brotli() -> Encoder {
        let (buffer, quality, window) = (4096, 5, 22);
        Encoder::Brotli(Box::new(brotli::CompressorWriter::new(Vec::new(), buffer, quality, window)))
    }

    pub(super) fn zstd() -> Encoder {
        Encoder::Zstd(zstd::stream::write::Encoder::new(Vec::new(), zstd::DEFAULT_COMPRESSION_LEVEL).unwrap())
    }

    /// Encodes and flushes these bytes.
    pub(super) fn encode(&mut self, bytes: &[u8]) -> Vec<u8> {
        match self {
            Encoder::Gzip(encoder) => flushed(encoder, bytes).map(|()| std::mem::take(encoder.get_mut())),
            Encoder::Brotli(encoder) => flushed(encoder, bytes).map(|()| std::mem::take(encoder.get_mut())),
            Encoder::Zstd(encoder) => flushed(encoder, bytes).map(|()| std::mem::take(encoder.get_mut())),
        }
        .unwrap()
    }

    /// The end of the encoding.
    pub(super) fn end(self) -> Vec<u8> {
        match self {
            Encoder::Gzip(encoder) => encoder.finish().unwrap(),
            Encoder::Brotli(encoder) => encoder.into_inner(),
            Encoder::Zstd(encoder) => encoder.finish().unwrap(),
        }
    }
}

fn flushed(encoder: &mut impl Write, bytes: &[u8]) -> io::Result<()> {
    encoder.write_all(bytes)?;
    encoder.flush()
}
