import { isJsonNumber } from "@tidegate/model/ExactNumber"
import { shortened } from "./Cutting.ts"
import { Unrenderable } from "./Rendering.ts"

/**
 * Blocks as the API takes them: texts that are too long are cut, empty ones replaced, and parts that have nothing to say left out, so
 * that one value of an event does not have the whole message refused.
 */

const mostBlocks = 50
/** Items of a list, by the type of the block that has it. */
const mostItems: Readonly<Record<string, number>> = { actions: 25, context: 10, section: 10 }
/** Of texts, by where they stand: the member that holds the text, in what. */
const longestTexts: Readonly<Record<string, number>> = {
  "header.text": 150,
  "section.text": 3_000,
  "section.fields": 2_000,
  "image.title": 2_000,
  "button.text": 75,
  "confirm.title": 100,
  "confirm.text": 300,
  "confirm.confirm": 30,
  "confirm.deny": 30,
  "option.text": 75,
  "option.description": 75,
  "video.title": 200,
  "video.description": 200,
  placeholder: 150
}
const longestText = 3_000
const longestMarkdown = 12_000
/** Of members that are no texts with markup. A URL that is cut would lead elsewhere. */
const longestMembers: Readonly<Record<string, number>> = {
  value: 2_000,
  alt_text: 2_000,
  action_id: 255,
  block_id: 255
}
const urls = new Set(["url", "image_url", "thumbnail_url", "title_url", "video_url", "provider_icon_url"])
const longestUrl = 3_000
/** Stands where a text has to be, and is none. */
const nothing = "—"

type Part = Readonly<Record<string, unknown>>

const isPart = (value: unknown): value is Part => typeof value === "object" && value !== null && !Array.isArray(value)

const isText = (value: unknown): value is Part & { readonly type: "mrkdwn" | "plain_text" } =>
  isPart(value) && (value["type"] === "mrkdwn" || value["type"] === "plain_text")

/** Values are escaped wherever they stand; what is no text is not read as one. */
const unescaped = (text: string): string =>
  text.replaceAll("&lt;", "<").replaceAll("&gt;", ">").replaceAll("&amp;", "&")

/** Cut, and never within an escape, which would show as its half. */
const cut = (text: string, longest: number): string =>
  shortened(text, longest).replace(/&(?:a|am|amp|l|lt|g|gt)?…$/, "…")

const textOf = (text: Part, longest: number, orNothing: boolean): Part | null => {
  const { text: written } = text
  const said = typeof written === "string" ? written : isJsonNumber(written) ? String(written) : ""
  if (said.trim() === "" && !orNothing) return null
  const made = { ...text, text: said.trim() === "" ? nothing : cut(said, longest) }
  // Else the API goes through the text once more, and takes names in it for mentions and links.
  return text["type"] === "mrkdwn" && text["verbatim"] === undefined ? { ...made, verbatim: true } : made
}

const memberOf = (name: string, value: string): string | null => {
  const plain = unescaped(value)
  if (!urls.has(name)) return shortened(plain, longestMembers[name] ?? Number.POSITIVE_INFINITY)
  if (plain.length > longestUrl) {
    throw new Unrenderable(`config.blocks_template makes a URL of more than ${longestUrl} characters of this event`)
  }
  return plain.trim() === "" ? null : plain
}

/** Rich texts are laid out by their own parts, which are no text objects. */
const own = new Set(["rich_text", "table"])

/** What stands in a block or in a part of one. `of`: what that is; null: it says nothing, and is left out. */
const partOf = (part: Part, of: string): Part | null => {
  const made: Record<string, unknown> = {}
  for (const [name, value] of Object.entries(part)) {
    const longest = longestTexts[`${of}.${name}`] ?? longestTexts[name] ?? longestText
    if (isText(value)) {
      const isNeeded = of !== "section" && of !== "header"
      const text = textOf(value, longest, isNeeded)
      if (text !== null) made[name] = text
    } else if (Array.isArray(value)) made[name] = itemsOf(value, name, of, longest)
    else if (isPart(value)) made[name] = partOf(value, name === "confirm" ? name : typeOf(value)) ?? undefined
    else if (typeof value === "string") {
      const isMarkdown = name === "text" && of === "markdown"
      const text = name === "text" ? cut(value, isMarkdown ? longestMarkdown : longest) : memberOf(name, value)
      if (text !== null) made[name] = text
    } else made[name] = value
  }
  return saysSomething(made, of) ? made : null
}

const itemsOf = (items: ReadonlyArray<unknown>, name: string, of: string, longest: number): ReadonlyArray<unknown> =>
  items
    .flatMap((item) => {
      if (isText(item)) return textOf(item, longest, of === "section") ?? []
      if (isPart(item)) return partOf(item, name === "options" ? "option" : typeOf(item)) ?? []
      return [item]
    })
    .slice(0, mostItems[of] ?? Number.POSITIVE_INFINITY)

const typeOf = (part: Part): string => (typeof part["type"] === "string" ? part["type"] : "")

const isEmpty = (value: unknown): boolean => value === undefined || (Array.isArray(value) && value.length === 0)

const saysSomething = (made: Part, of: string): boolean => {
  if (of === "section") return !isEmpty(made["text"]) || !isEmpty(made["fields"])
  if (of === "header") return !isEmpty(made["text"])
  if (of === "context" || of === "actions") return !isEmpty(made["elements"])
  if (of === "markdown") return typeof made["text"] === "string" && made["text"].trim() !== ""
  if (of === "image") return !isEmpty(made["image_url"]) || !isEmpty(made["slack_file"])
  return true
}

/** What a template has made, as blocks that say something; there may be none. */
export const blocksOf = (made: unknown): ReadonlyArray<unknown> => {
  const blocks = isPart(made) && "blocks" in made ? made["blocks"] : made
  if (!Array.isArray(blocks)) {
    throw new Unrenderable("config.blocks_template makes neither a list of blocks nor an object with one")
  }
  if (blocks.length > mostBlocks) throw new Unrenderable(`config.blocks_template makes more than ${mostBlocks} blocks`)
  return blocks.flatMap((block: unknown) => {
    if (!isPart(block) || own.has(typeOf(block))) return [block]
    return partOf(block, typeOf(block)) ?? []
  })
}
