import { describe, expect, it } from "@effect/vitest"
import { Schema } from "effect"
import { posix } from "node:path"
import { forwardedUrl } from "@tidegate/connectors/ForwardedUrl"
import { processorTime } from "../../runtime/test/processorTime.ts"

describe("Forwarded path", () => {
  const contained: ReadonlyArray<readonly [path: string, sent: string]> = [
    // As it came.
    ["/a%2Fb", "/a%2Fb"],
    ["/a%2fb%5Cc", "/a%2fb%5Cc"],
    ["/%20a%20", "/%20a%20"],
    ["/caf%C3%A9/%E2%82%AC", "/caf%C3%A9/%E2%82%AC"],
    ["/a;b=c/d;e", "/a;b=c/d;e"],
    ["/a%3Bb", "/a%3Bb"],
    ["/v1.2/..a/a../a..b/...", "/v1.2/..a/a../a..b/..."],
    ["/...;/x", "/...;/x"],
    ["/100%/%zz/%", "/100%/%zz/%"],
    ["/100%2525", "/100%2525"],
    ["/a%252Fb", "/a%252Fb"],
    ["/a%3Fb%23c", "/a%3Fb%23c"],
    ["//a//b/", "//a//b/"],
    ["/a:b@c", "/a:b@c"],
    // The bytes that came beyond ASCII.
    ["/caf\u00c3\u00a9", "/caf%C3%A9"],
    // What would end the path, or become a slash.
    ["/a#b?c\\d", "/a%23b%3Fc%5Cd"],
    // Plain steps are taken, within.
    ["/a/../b", "/b"],
    ["/../../b", "/b"],
    ["/%2e%2E/.%2e/b/.", "/b/"],
    ["/a/./b", "/a/b"],
    ["/a/%2e%2e/..;x", "null"],
    // A path that does not begin with a slash stays one.
    ["@evil.example/x", "/@evil.example/x"]
  ]
  for (const [path, sent] of contained) {
    it(`Forwarded path ${path} becomes ${sent}`, () => {
      const expected = sent === "null" ? null : `https://h.example/base${sent}`
      expect(forwardedUrl("https://h.example/base", path, "")).toBe(expected)
    })
  }

  const steps = ["..", "%2e%2e", ".%2e", "%2E.", "%252e%252e", "%25%32%65.", "%%32e%%32%65", "%c0%ae%c0%ae", "%C0%AE."]
  const slashes = ["%2f", "%2F", "%5c", "%252f", "%c0%af", "%c1%9c", "%e0%80%af", "%f0%80%80%af", "\\", ";/", ";x=1/"]
  it("Forwarded path with encoded steps upward is refused", () => {
    const sent = steps.flatMap((up) => slashes.map((slash) => `/${up}${slash}admin`))
    const behind = steps.flatMap((up) => slashes.map((slash) => `/a/b${slash}${up}${slash}admin`))
    const more = ["/a%2f..", "/a%5c%2e%2e", "/..;", "/..%3b", "/..%3fx", "/..%23", "/..%00/x", "/..%20/x", "/.%09./x"]
    for (const path of [...sent, ...behind, ...more, "/.%2509./", "/%2%09e%2e/", `/%${"25".repeat(10_000)}2e`]) {
      // A plain step is taken before anybody decodes.
      if (/^\/(?:\.\.|%2e%2e|\.%2e|%2e\.)\//i.test(path)) continue
      expect([path, forwardedUrl("https://h.example/base", path, "")]).toEqual([path, null])
    }
  })

  it("Forwarded path of sixteen thousand escapes is judged within a fraction of a second", () => {
    const spent = processorTime()
    const paths = ["/%25".repeat(8_000), "/%2541".repeat(5_000), "/.".repeat(16_000), `/${".%2e;".repeat(6_000)}`]
    for (const path of paths) forwardedUrl("https://h.example/base", path, "")
    // With room for a processor that is shared: what is quadratic takes seconds.
    expect(spent() / paths.length).toBeLessThan(300)
  })

  const Piece = Schema.Literals(
    (
      "a .. . ... / // \\ % %2e %2E %2f %5c %252e %252f %%32e 2e 2f 5c 25 %25 %25252f %5C %3b ; ;x=.. ? # @ : & = + %00 %20 %09 " +
      "..; .%2e;x/ ..%2f %2e%2e%2f ..%5c %c0%ae %c0%af [ ] { } | ^ ' \" < > ` ~ \u00fc \u00c3\u00bc %C3%BC evil.example http://"
    ).split(" ") as [string, ...Array<string>]
  )
  const Text = Schema.Array(Schema.Union([Piece, Schema.Literals([" ", "\t", "\r\n", "\0", "\u007f"])]))

  const decoded = (text: string): string =>
    text.replace(/%([0-7][\da-f])/gi, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)))

  /** Where a target may find itself that decodes up to four times, cuts parameters off, and takes a backslash for a slash. */
  const readings = (pathname: string): ReadonlyArray<string> => {
    const all = [pathname]
    for (let times = 0; times < 4; times++) all.push(decoded(all.at(-1)!))
    return all.flatMap((read) => {
      const slashed = read.replaceAll("\\", "/")
      return [slashed, slashed.replace(/;[^/]*/g, "")].map((path) => posix.normalize(path))
    })
  }

  it.prop("Forwarded path stays below the base path, however often it is decoded", [Text, Text], ([path, query]) => {
    for (const base of ["https://h.example:444/base/hooks?key=v", "https://h.example:444/base/hooks/?key=v"]) {
      const href = forwardedUrl(base, `/${path.join("")}`, query.join(""))
      if (href === null) return
      const url = new URL(href)
      expect([url.origin, url.username, url.hash]).toEqual(["https://h.example:444", "", ""])
      for (const read of readings(url.pathname)) expect(`${read}/`.startsWith("/base/hooks/")).toBe(true)
      expect(url.searchParams.get("key")).toBe("v")
      expect(url.search.startsWith("?key=v")).toBe(true)
    }
  })

  const Plain = Schema.Literals([
    "a",
    "b%2Fc",
    "%20",
    "%C3%BC",
    "..a",
    "a..",
    "...",
    "v1.2",
    ";p=1",
    "%25",
    "-_~!$&'()*+,:=@"
  ])
  it.prop("Forwarded path without steps stays unchanged", [Schema.Array(Plain)], ([parts]) => {
    const path = `/x${parts.join("/")}`
    const url = forwardedUrl("https://h.example/base", path, "q=%2F..%2f")
    expect(url).toBe(`https://h.example/base${path}?q=%2F..%2f`)
    expect(new URL(url!).pathname + new URL(url!).search).toBe(`/base${path}?q=%2F..%2f`)
  })
})
