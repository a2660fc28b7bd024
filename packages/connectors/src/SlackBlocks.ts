import { isJsonNumber } from "@tidegate/json/ExactNumber"
import { pointsOf, shortenedPoints } from "./Cutting.ts"
import { Unrenderable } from "./Rendering.ts"

/**
 * Adapts blocks to the API's limits: long texts are cut, empty ones replaced, and empty parts removed, so that one value of an event does not
 * cause the whole message to be refused.
 */

const maxBlocks = 50
/** Maximum number of items, by the type of the element that contains them. */
const maxItems: Readonly<Record<string, number>> = {
  actions: 25,
  card: 3,
  carousel: 10,
  checkboxes: 10,
  container: 10,
  context: 10,
  context_actions: 5,
  multi_static_select: 100,
  option_group: 100,
  overflow: 5,
  radio_buttons: 10,
  section: 10,
  static_select: 100
}
/** Maximum length of texts, by the element and the member that holds the text. */
const longestTexts: Readonly<Record<string, number>> = {
  "alert.text": 200,
  "button.text": 75,
  "card.title": 150,
  "card.subtitle": 150,
  "card.body": 200,
  "card.subtext": 200,
  "confirm.title": 100,
  "confirm.text": 300,
  "confirm.confirm": 30,
  "confirm.deny": 30,
  "container.title": 150,
  "container.subtitle": 150,
  "header.text": 150,
  "image.title": 2_000,
  "input.label": 2_000,
  "input.hint": 2_000,
  "option.text": 75,
  "option.description": 75,
  "option_group.label": 75,
  "section.text": 3_000,
  "section.fields": 2_000,
  "video.title": 200,
  "video.description": 200,
  "workflow_button.text": 75,
  placeholder: 150
}
const longestText = 3_000
/** Characters of all Markdown blocks together. */
const longestMarkdown = 12_000
/** Maximum length of members without markup, by element and member, or by member alone. A URL is not cut, because it would lead elsewhere. */
const longestMembers: Readonly<Record<string, number>> = {
  "option.value": 150,
  "video.author_name": 50,
  "video.provider_name": 50,
  accessibility_label: 75,
  action_id: 255,
  alt_text: 2_000,
  block_id: 255,
  value: 2_000
}
/** Optional members that must not be empty. */
const neverEmpty = new Set(["action_id", "block_id"])
const longestUrl = 3_000
const longestUrls: Readonly<Record<string, number>> = {
  url: longestUrl,
  image_url: longestUrl,
  thumbnail_url: longestUrl,
  title_url: 2_000,
  video_url: longestUrl,
  provider_icon_url: 2_000
}
/** Replaces an empty text where a text is required. */
const nothing = "—"

type Part = Readonly<Record<string, unknown>>

const isPart = (value: unknown): value is Part => typeof value === "object" && value !== null && !Array.isArray(value)

const isText = (value: unknown): value is Part & { readonly type: "mrkdwn" | "plain_text" } =>
  isPart(value) && (value["type"] === "mrkdwn" || value["type"] === "plain_text")

/** Values are escaped for markup; members that are not text objects need the original value. */
const unescaped = (text: string): string =>
  text.replaceAll("&lt;", "<").replaceAll("&gt;", ">").replaceAll("&amp;", "&")

/** Cuts a text, but not inside an escape, whose half would be visible. */
const cut = (text: string, longest: number): string =>
  shortenedPoints(text, longest).replace(/&(?:a|am|amp|l|lt|g|gt)?…$/, "…")

const textOf = (text: Part, longest: number, orNothing: boolean): Part | null => {
  const { text: written } = text
  const said = typeof written === "string" ? written : isJsonNumber(written) ? String(written) : ""
  if (said.trim() === "" && !orNothing) return null
  const made = { ...text, text: said.trim() === "" ? nothing : cut(said, longest) }
  // Otherwise the API parses the text again, and turns names in it into mentions and links.
  return text["type"] === "mrkdwn" && text["verbatim"] === undefined ? { ...made, verbatim: true } : made
}

const memberOf = (name: string, of: string, value: string): string | null => {
  const plain = unescaped(value)
  const most = longestUrls[name]
  if (most === undefined) {
    const longest = longestMembers[`${of}.${name}`] ?? longestMembers[name] ?? Number.POSITIVE_INFINITY
    const text = shortenedPoints(plain, longest)
    return text === "" && neverEmpty.has(name) ? null : text
  }
  if (pointsOf(plain) > most) {
    throw new Unrenderable(`config.blocks_template makes a URL of more than ${most} characters of this event`)
  }
  return plain.trim() === "" ? null : plain
}

/** Elements with a structure of their own and no text objects: their texts have no markup. */
const own = new Set(["data_table", "rich_text", "table"])

const isEmptyOf = (type: string, value: unknown): boolean =>
  isPart(value) && value["type"] === type && value["text"] === ""

/** The content of such an element with its values not escaped. */
const literal = (value: unknown): unknown => {
  if (typeof value === "string") return unescaped(value)
  if (Array.isArray(value)) {
    const made = (value as ReadonlyArray<unknown>).map(literal)
    const said = made.filter((one) => !isEmptyOf("text", one))
    return said.length > 0 || made.length === 0 ? said : [{ type: "text", text: nothing }]
  }
  if (!isPart(value)) return value
  const made: Part = Object.fromEntries(Object.entries(value).map(([name, one]) => [name, literal(one)]))
  if (made["type"] === "link" && made["url"] === "") return { type: "text", text: made["text"] ?? "" }
  return isEmptyOf("raw_text", made) ? { ...made, text: nothing } : made
}

/** The kind of a part: its type, or the name of its member if it has no type. */
const kindOf = (name: string, part: Part): string => {
  if (name === "confirm") return name
  if (name === "options") return "option"
  if (name === "option_groups") return "option_group"
  return name === "positive_button" || name === "negative_button" ? "button" : typeOf(part)
}

/** Characters that are left for the Markdown of a message. */
interface Room {
  left: number
}

/** Adapts a block or a part of one. `of`: its kind. Null: it is empty and is removed. */
const partOf = (part: Part, of: string, room: Room): Part | null => {
  if (own.has(of)) return literal(part) as Part
  const made: Record<string, unknown> = {}
  for (const [name, value] of Object.entries(part)) {
    const longest = longestTexts[`${of}.${name}`] ?? longestTexts[name] ?? longestText
    if (isText(value)) {
      const isNeeded = of !== "section" && of !== "header"
      const text = textOf(value, longest, isNeeded)
      if (text !== null) made[name] = text
    } else if (Array.isArray(value)) made[name] = itemsOf(value, name, of, longest, room)
    else if (isPart(value)) made[name] = partOf(value, kindOf(name, value), room) ?? undefined
    else if (typeof value === "string") {
      const text = name === "text" ? plainOf(value, of, longest, room) : memberOf(name, of, value)
      if (text !== null) made[name] = text
    } else made[name] = value
  }
  return saysSomething(made, of) ? made : null
}

const plainOf = (value: string, of: string, longest: number, room: Room): string => {
  if (of !== "markdown") return cut(value, longest)
  const text = room.left > 0 ? cut(value, room.left) : ""
  room.left -= pointsOf(text)
  return text
}

const itemsOf = (
  items: ReadonlyArray<unknown>,
  name: string,
  of: string,
  longest: number,
  room: Room
): ReadonlyArray<unknown> =>
  items
    .flatMap((item) => {
      if (isText(item)) return textOf(item, longest, of === "section") ?? []
      if (isPart(item)) return partOf(item, kindOf(name, item), room) ?? []
      return [item]
    })
    .slice(0, maxItems[of] ?? Number.POSITIVE_INFINITY)

const typeOf = (part: Part): string => (typeof part["type"] === "string" ? part["type"] : "")

const isEmpty = (value: unknown): boolean => value === undefined || (Array.isArray(value) && value.length === 0)

const saysSomething = (made: Part, of: string): boolean => {
  if (of === "section") return !isEmpty(made["text"]) || !isEmpty(made["fields"])
  if (of === "header") return !isEmpty(made["text"])
  if (["actions", "carousel", "context", "context_actions"].includes(of)) return !isEmpty(made["elements"])
  if (of === "container") return !isEmpty(made["child_blocks"])
  if (of === "markdown") return typeof made["text"] === "string" && made["text"].trim() !== ""
  if (of === "image") return !isEmpty(made["image_url"]) || !isEmpty(made["slack_file"])
  return true
}

/** Converts the result of a template to blocks that are not empty; the list may be empty. */
export const blocksOf = (made: unknown): ReadonlyArray<unknown> => {
  const blocks = isPart(made) && "blocks" in made ? made["blocks"] : made
  if (!Array.isArray(blocks)) {
    throw new Unrenderable("config.blocks_template makes neither a list of blocks nor an object with one")
  }
  if (blocks.length > maxBlocks) throw new Unrenderable(`config.blocks_template makes more than ${maxBlocks} blocks`)
  const room: Room = { left: longestMarkdown }
  return blocks.flatMap((block: unknown) => (isPart(block) ? (partOf(block, typeOf(block), room) ?? []) : [block]))
}
