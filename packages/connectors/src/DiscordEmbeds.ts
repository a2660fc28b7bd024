import { isJsonNumber } from "@tidegate/json/ExactNumber"
import { urlFault } from "@tidegate/model/UrlFault"
import { pointsOf, shortenedPoints } from "./Cutting.ts"
import { Unrenderable } from "./Rendering.ts"

/**
 * Adapts embeds to the API's limits: long values are cut and empty ones removed, so that one value of an event does not cause the whole
 * message to be refused.
 */

const maxEmbeds = 10
const maxFields = 25
/** Code points of each text, and of all texts of a message together. */
const longest = { title: 256, description: 4_096, footer: 2_048, author: 256, name: 256, value: 1_024 }
const longestTogether = 6_000
/** A field requires both of its texts: this character is invisible. */
const nothing = "\u200b"

export type Embed = Readonly<Record<string, unknown>>

const isObject = (value: unknown): value is Embed =>
  typeof value === "object" && value !== null && !Array.isArray(value)

const textOf = (value: unknown): string =>
  typeof value === "string" ? value.trim() : isJsonNumber(value) || typeof value === "boolean" ? String(value) : ""

/** Code points that are left for the texts of a message. */
interface Room {
  left: number
}

const cut = (value: unknown, most: number, room: Room): string => {
  const text = shortenedPoints(textOf(value), Math.min(most, Math.max(0, room.left)))
  room.left -= pointsOf(text)
  return text
}

/** Removes empty members, which the API refuses. */
const given = (members: Embed): Embed =>
  Object.fromEntries(Object.entries(members).filter(([, value]) => value !== "" && value !== null))

/** A part that requires one of its texts; null without that text. */
const part = (value: unknown, name: string, most: number, room: Room): Embed | null => {
  if (!isObject(value)) return null
  const text = cut(value[name], most, room)
  return text === "" ? null : given({ ...value, [name]: text })
}

const picture = (value: unknown): Embed | null => (isObject(value) && textOf(value["url"]) !== "" ? value : null)

/** One text of a field. An invisible one counts as well. */
const halfOf = (value: unknown, most: number, room: Room): string => {
  const text = cut(value, most, room)
  if (text !== "") return text
  room.left -= pointsOf(nothing)
  return nothing
}

const fieldsOf = (value: unknown, room: Room): ReadonlyArray<Embed> | null => {
  if (!Array.isArray(value)) return null
  const fields: Array<Embed> = []
  for (const field of value.filter(isObject).slice(0, maxFields)) {
    // Without remaining capacity both texts would be invisible.
    if (room.left < 2) break
    const name = halfOf(field["name"], Math.min(longest.name, room.left - 1), room)
    fields.push({ ...field, name, value: halfOf(field["value"], longest.value, room) })
  }
  return fields.length === 0 ? null : fields
}

const embedOf = (embed: Embed, room: Room): Embed | null => {
  const { author, description, fields, footer, image, thumbnail, title, ...rest } = embed
  // Parts that are read first are cut last.
  const made = given({
    ...rest,
    title: cut(title, longest.title, room),
    author: part(author, "name", longest.author, room),
    description: cut(description, longest.description, room),
    fields: fieldsOf(fields, room),
    footer: part(footer, "text", longest.footer, room),
    image: picture(image),
    thumbnail: picture(thumbnail)
  })
  const says = ["title", "author", "description", "fields", "footer", "image", "thumbnail", "video"]
  return says.some((name) => made[name] !== undefined) ? made : null
}

/** Converts the result of a template to embeds that are not empty; the list may be empty. */
export const embedsOf = (made: unknown): ReadonlyArray<Embed> => {
  const embeds: ReadonlyArray<unknown> = Array.isArray(made)
    ? (made as ReadonlyArray<unknown>)
    : made === null
      ? []
      : [made]
  const objects = embeds.filter(isObject)
  if (objects.length < embeds.length) throw new Unrenderable("config.embeds makes neither an object nor a list of them")
  if (embeds.length > maxEmbeds) throw new Unrenderable(`config.embeds makes more than ${maxEmbeds} embeds`)
  const room: Room = { left: longestTogether }
  return objects.map((embed) => embedOf(embed, room)).filter((embed) => embed !== null)
}

/** A URL that the API fetches: must be in the public network. */
export const fetchedUrl = (written: string, setting: string): string => {
  if (urlFault(written, 2_048) !== null) throw new Unrenderable(`config.${setting} does not make a URL of this event`)
  return written
}

const memberOf = (value: unknown, name: string): unknown => (isObject(value) ? value[name] : undefined)

/** The URLs of an embed that the API fetches. */
export const picturesOf = ({ author, footer, image, thumbnail, video }: Embed): ReadonlyArray<string> => {
  const places = [
    ...[image, thumbnail, video].map((one) => memberOf(one, "url")),
    ...[author, footer].map((one) => memberOf(one, "icon_url"))
  ]
  return places
    .filter((one) => one !== undefined && one !== null)
    .map((one) => fetchedUrl(typeof one === "string" ? one : "", "embeds"))
}
