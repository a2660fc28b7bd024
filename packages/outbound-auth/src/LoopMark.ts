import { hash, timingSafeEqual } from "node:crypto"
import { loopHeader } from "@tidegate/model/HeaderRules"
import type { Values } from "@tidegate/model/Message"

/*
 * The header that tells how a request has come to be (in the spirit of RFC 8586): a list with one member for each gateway that it has come
 * through. This gateway's own names the first request of the chain and how often the chain has left the gateway, signed, so that nobody else can count
 * for it or take it back to nothing but by leaving it out. Members of others go on as they came: they need theirs, as this gateway needs its own.
 */

/** What a request says of the chain that it is in. */
export interface Chain {
  /** The request that the chain began with. */
  readonly root: string
  /** How often the chain has left this gateway. */
  readonly hops: number
  /** The members of other gateways. */
  readonly others: ReadonlyArray<string>
}

/** Keys that marks are signed with: the first signs, all are taken. */
export type LoopKeys = readonly [string, ...ReadonlyArray<string>]

/** Members of one list, and its characters. A chain through more gateways is taken for endless. */
const maxMembers = 16
const longest = 2_048
/** Of a chain that is taken for endless, and the highest number that is written. */
export const endless = 999

const form = /^tidegate;r=(req_[0-9a-z]{26});n=([1-9]\d{0,2});s=([\w-]{22})$/

/** The end of the digest is left out, so that nobody goes on from it where the key stopped. */
const signature = (key: string, root: string, hops: number): string =>
  hash("sha256", `${key} ${root} ${hops}`, "base64url").slice(0, 22)

const isSigned = (keys: LoopKeys, root: string, hops: number, signed: string): boolean =>
  keys.some((key) => timingSafeEqual(Buffer.from(signature(key, root, hops)), Buffer.from(signed)))

/** What the headers of the request `id` say. Without a member of this gateway's the chain begins with it. */
export const readChain = (keys: LoopKeys, headers: Values, id: string): Chain => {
  const said = headers[loopHeader]
  if (said === undefined) return { root: id, hops: 0, others: [] }
  const text = typeof said === "string" ? said : said.join(",")
  const members = text.length > longest ? [] : text.split(",").map((member) => member.trim())
  if (members.length === 0 || members.length > maxMembers) return { root: id, hops: endless, others: [] }
  let chain: Chain = { root: id, hops: 0, others: [] }
  const others: Array<string> = []
  for (const member of members) {
    const [, root = "", count = "", signed = ""] = form.exec(member) ?? []
    const hops = Number(count)
    if (root === "" || !isSigned(keys, root, hops, signed)) {
      if (member !== "") others.push(member)
    } else if (hops > chain.hops) chain = { root, hops, others }
  }
  return { ...chain, others }
}

/** The header of what leaves the gateway because of a request of that chain. */
export const writeChain = (keys: LoopKeys, { hops, others, root }: Chain): string => {
  const next = Math.min(hops + 1, endless)
  const own = `tidegate;r=${root};n=${next};s=${signature(keys[0], root, next)}`
  return others.length === 0 ? own : `${others.join(", ")}, ${own}`
}
