import { hash, timingSafeEqual } from "node:crypto"
import { loopHeader } from "@tidegate/model/HeaderRules"
import { seededId } from "@tidegate/model/Ids"
import type { Values } from "@tidegate/model/Message"

/*
 * The loop mark: a header that counts how often a request has led back to the gateway (in the spirit of RFC 8586). It is a list with one
 * member for each gateway on the way. This gateway's member names the first request of the chain and how often the chain has left the gateway. It
 * is signed, so nobody else can change the count; others can only omit it. Members of other gateways are forwarded unchanged, because those
 * gateways need them.
 */

/** The chain that a request belongs to. */
export interface Chain {
  /** The first request of the chain, or `systemRoot`. */
  readonly root: string
  /** How often the chain has left this gateway. */
  readonly hops: number
  /** The members of other gateways. */
  readonly others: ReadonlyArray<string>
}

/** The keys of loop marks: the first one signs, all are accepted. */
export type LoopKeys = readonly [string, ...ReadonlyArray<string>]

/** Members of the list, and its characters. A chain through more gateways is treated as endless. */
const maxMembers = 16
const longest = 2_048
/** The count of a chain that is treated as endless, and the highest count that is written. */
export const endless = 999

const form = /^tidegate;r=((?:req|sys)_[0-9a-z]{26});n=([1-9]\d{0,2});s=([\w-]{22})$/

/** The root of all chains that begin with a system event of a team. A process of the previous version takes it for another gateway's. */
export const systemRoot = (teamId: string): string => seededId("sys_", 0, teamId)

/** The digest is cut, so that nobody can extend the signed text from it. */
const signature = (key: string, root: string, hops: number): string =>
  hash("sha256", `${key} ${root} ${hops}`, "base64url").slice(0, 22)

const isSigned = (keys: LoopKeys, root: string, hops: number, signed: string): boolean =>
  keys.some((key) => timingSafeEqual(Buffer.from(signature(key, root, hops)), Buffer.from(signed)))

/** Reads the chain from the headers of request `id`. Without a member of this gateway, the chain begins with this request. */
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

/** The header for requests that leave the gateway because of a request of that chain. */
export const writeChain = (keys: LoopKeys, { hops, others, root }: Chain): string => {
  const next = Math.min(hops + 1, endless)
  const own = `tidegate;r=${root};n=${next};s=${signature(keys[0], root, next)}`
  return others.length === 0 ? own : `${others.join(", ")}, ${own}`
}
