//! The bytes of a content part: a client sends them as a `data:` URL, or in base64 next to their type. Backends can read
//! both forms, whichever the client sent.

use super::request_item::{ContentPart, Media};
use std::borrow::Cow;

/// What a file or image is if nothing names its type.
const UNKNOWN_TYPE: &str = "application/octet-stream";

impl ContentPart {
    /// Of an image or a file: the URL that the client sent. Of an image: else its bytes as a `data:` URL.
    pub fn url(&self) -> Option<Cow<'_, str>> {
        match self {
            ContentPart::Image { url: Some(url), .. } | ContentPart::File { url: Some(url), .. } => Some(url.into()),
            ContentPart::Image { url: None, media, .. } => media.data_url(),
            ContentPart::File { url: None, .. } => None,
            ContentPart::Text { .. } | ContentPart::Refusal { .. } | ContentPart::Audio { .. } => None,
        }
    }

    /// Of a file: its bytes as the client sent them, or else as a `data:` URL. Of audio: its bytes in base64.
    pub fn data(&self) -> Option<Cow<'_, str>> {
        match self {
            ContentPart::File { data, media, .. } => data.as_deref().map(Cow::from).or_else(|| media.data_url()),
            ContentPart::Audio { .. } => self.base64().map(Cow::from),
            ContentPart::Text { .. } | ContentPart::Refusal { .. } | ContentPart::Image { .. } => None,
        }
    }

    /// The media type of the bytes, if it is known.
    pub fn media_type(&self) -> Option<Cow<'_, str>> {
        let given = self.media().and_then(|media| media.media_type.as_deref());
        let given = given.or_else(|| self.data_url().map(|(media_type, _)| media_type)).map(Cow::from);
        given.or_else(|| match self {
            ContentPart::Audio { format, .. } => Some(format!("audio/{}", format.as_deref()?).into()),
            _ => None,
        })
    }

    /// The bytes in base64.
    pub fn base64(&self) -> Option<&str> {
        let given = self.media().and_then(|media| media.base64.as_deref());
        given.or_else(|| self.data_url().map(|(_, base64)| base64)).or_else(|| match self {
            // Without `data:` it is the base64 itself.
            ContentPart::File { data, .. } | ContentPart::Audio { data, .. } => data.as_deref(),
            _ => None,
        })
    }

    /// The format of audio: what the client sent, or else from the media type.
    pub fn format(&self) -> Option<Cow<'_, str>> {
        let ContentPart::Audio { format, .. } = self else { return None };
        if let Some(format) = format {
            return Some(format.into());
        }
        let media_type = self.media_type()?;
        let subtype = media_type.rsplit('/').next().unwrap_or_default();
        Some(Cow::Owned(match subtype {
            "mpeg" => "mp3".to_owned(),
            subtype => subtype.trim_start_matches("x-").to_owned(),
        }))
    }

    fn media(&self) -> Option<&Media> {
        match self {
            ContentPart::Image { media, .. } | ContentPart::File { media, .. } | ContentPart::Audio { media, .. } => {
                Some(media)
            }
            ContentPart::Text { .. } | ContentPart::Refusal { .. } => None,
        }
    }

    /// The media type and the bytes (in base64) of a `data:` URL.
    fn data_url(&self) -> Option<(&str, &str)> {
        let texts = match self {
            ContentPart::Image { url, .. } => [url, &None],
            ContentPart::File { url, data, .. } => [url, data],
            ContentPart::Audio { data, .. } => [data, &None],
            ContentPart::Text { .. } | ContentPart::Refusal { .. } => return None,
        };
        let url = texts.into_iter().flatten().find_map(|text| text.strip_prefix("data:"))?;
        let (media, base64) = url.split_once(";base64,")?;
        // Parameters such as `;charset=…` and `;name=…` are not part of the media type.
        Some((media.split(';').next().unwrap_or_default(), base64))
    }
}

impl Media {
    fn data_url(&self) -> Option<Cow<'_, str>> {
        let base64 = self.base64.as_deref()?;
        // Some clients send a `data:` URL in the place of base64.
        if base64.starts_with("data:") {
            return Some(base64.into());
        }
        let media_type = self.media_type.as_deref().unwrap_or(UNKNOWN_TYPE);
        Some(format!("data:{media_type};base64,{base64}").into())
    }
}
