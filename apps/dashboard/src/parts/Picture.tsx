import { useEffect, useState } from "react"

/** Larger pictures are only downloaded: the browser would decode them on the page. */
const maxBytes = 5 * 1024 * 1024

/** How pictures of these types begin. SVG is none of them: it is a document, which can name others. */
const beginnings: ReadonlyArray<readonly [type: string, at: number, bytes: string]> = [
  ["image/png", 0, "\x89PNG\r\n\x1a\n"],
  ["image/jpeg", 0, "\xff\xd8\xff"],
  ["image/gif", 0, "GIF8"],
  ["image/webp", 8, "WEBP"]
]

/** The type of a picture, by its bytes and not by what its sender calls it; null: it is none. */
export const pictureType = (bytes: Uint8Array): string | null =>
  bytes.length > maxBytes
    ? null
    : (beginnings.find(([, at, text]) =>
        Array.from(text).every((one, i) => bytes[at + i] === one.charCodeAt(0))
      )?.[0] ?? null)

/** A stored body that is a picture. */
export const Picture = ({ bytes, type }: { readonly bytes: Uint8Array<ArrayBuffer>; readonly type: string }) => {
  const [url, setUrl] = useState<string | null>(null)
  useEffect(() => {
    const made = URL.createObjectURL(new Blob([bytes], { type }))
    setUrl(made)
    return () => URL.revokeObjectURL(made)
  }, [bytes, type])
  return url === null ? null : <img className="picture" src={url} alt="What was sent, as a picture" />
}
