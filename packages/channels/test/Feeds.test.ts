import { describe, expect, it } from "@effect/vitest"
import { cpuMillis, inSlices } from "@tidegate/runtime/EventLoopBudget"
import { runToEnd } from "@tidegate/runtime/Resumable"
import { Effect } from "effect"
import { Feed } from "feed"
import { parseFeed } from "feedsmith"
import { leastMs, timesSlower } from "../../../test/support/LoopHeld.ts"
import { entryId, type FeedDocument, parsingFeed } from "../src/FeedDocument.ts"

/** Feeds of other people's software and of the specifications, and feeds that are made to do harm. */
const read = (text: string | Uint8Array, contentType: string | null = null): FeedDocument | null =>
  runToEnd(parsingFeed(typeof text === "string" ? Buffer.from(text) : text, contentType))

/** https://www.rfc-editor.org/rfc/rfc4287#section-1.1, the extensive one. */
const atomSample = `<?xml version="1.0" encoding="utf-8"?>
<feed xmlns="http://www.w3.org/2005/Atom">
  <title type="text">dive into mark</title>
  <subtitle type="html">A &lt;em&gt;lot&lt;/em&gt; of effort went into making this effortless</subtitle>
  <updated>2005-07-31T12:29:29Z</updated>
  <id>tag:example.org,2003:3</id>
  <link rel="alternate" type="text/html" hreflang="en" href="http://example.org/"/>
  <link rel="self" type="application/atom+xml" href="http://example.org/feed.atom"/>
  <rights>Copyright (c) 2003, Mark Pilgrim</rights>
  <generator uri="http://www.example.com/" version="1.0">Example Toolkit</generator>
  <entry>
    <title>Atom draft-07 snapshot</title>
    <link rel="alternate" type="text/html" href="http://example.org/2005/04/02/atom"/>
    <link rel="enclosure" type="audio/mpeg" length="1337" href="http://example.org/audio/ph34r_my_podcast.mp3"/>
    <id>tag:example.org,2003:3.2397</id>
    <updated>2005-07-31T12:29:29Z</updated>
    <published>2003-12-13T08:29:29-04:00</published>
    <author><name>Mark Pilgrim</name><uri>http://example.org/</uri><email>f8dy@example.com</email></author>
    <contributor><name>Sam Ruby</name></contributor>
    <contributor><name>Joe Gregorio</name></contributor>
    <content type="xhtml" xml:lang="en" xml:base="http://diveintomark.org/">
      <div xmlns="http://www.w3.org/1999/xhtml"><p><i>[Update: The Atom draft is finished.]</i></p></div>
    </content>
  </entry>
</feed>`

/** https://www.rssboard.org/files/sample-rss-2.xml, two of its items. */
const rssSample = `<?xml version="1.0"?>
<rss version="2.0" xmlns:atom="http://www.w3.org/2005/Atom">
   <channel>
      <title>NASA Space Station News</title>
      <link>http://www.nasa.gov/</link>
      <description>A RSS news feed containing the latest NASA press releases on the International Space Station.</description>
      <language>en-us</language>
      <pubDate>Tue, 10 Jun 2003 04:00:00 GMT</pubDate>
      <atom:link href="https://www.rssboard.org/files/sample-rss-2.xml" rel="self" type="application/rss+xml" />
      <item>
         <title>Louisiana Students to Hear from NASA Astronauts Aboard Space Station</title>
         <link>http://www.nasa.gov/press-release/louisiana-students-to-hear-from-nasa-astronauts-aboard-space-station</link>
         <description>As part of the state's first Earth-to-space call, students from Louisiana will have an opportunity soon to hear from NASA astronauts aboard the International Space Station.</description>
         <pubDate>Fri, 21 Jul 2023 09:04 EDT</pubDate>
         <guid>http://www.nasa.gov/press-release/louisiana-students-to-hear-from-nasa-astronauts-aboard-space-station</guid>
      </item>
      <item>
         <description>NASA has selected KBR Wyle Services, LLC, of Fulton, Maryland, to provide mission and flight crew operations support for the International Space Station and future human space exploration.</description>
         <link>http://www.nasa.gov/press-release/nasa-awards-integrated-mission-operations-contract-iii</link>
         <pubDate>Thu, 20 Jul 2023 15:05 EDT</pubDate>
         <guid>http://www.nasa.gov/press-release/nasa-awards-integrated-mission-operations-contract-iii</guid>
      </item>
   </channel>
</rss>`

/** https://web.resource.org/rss/1.0/spec, shortened. */
const rdfSample = `<?xml version="1.0"?>
<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns="http://purl.org/rss/1.0/" xmlns:d="http://purl.org/dc/elements/1.1/">
  <channel rdf:about="http://www.xml.com/xml/news.rss">
    <title>XML.com</title><link>http://xml.com/pub</link><description>XML.com features</description>
    <items><rdf:Seq><rdf:li resource="http://xml.com/pub/2000/08/09/xslt/xslt.html"/></rdf:Seq></items>
  </channel>
  <item rdf:about="http://xml.com/pub/2000/08/09/xslt/xslt.html">
    <title>Processing Inclusions with XSLT</title>
    <link>http://xml.com/pub/2000/08/09/xslt/xslt.html</link>
    <d:creator>Ada</d:creator><d:date>2000-08-09</d:date>
  </item>
</rdf:RDF>`

/** https://www.jsonfeed.org/version/1.1/, the simple example. */
const jsonSample = JSON.stringify({
  version: "https://jsonfeed.org/version/1.1",
  title: "My Example Feed",
  home_page_url: "https://example.org/",
  feed_url: "https://example.org/feed.json",
  items: [
    { id: "2", content_text: "This is a second item.", url: "https://example.org/second-item" },
    { id: "1", content_html: "<p>Hello, world!</p>", url: "https://example.org/initial-post" }
  ]
})

describe("Feeds of the specifications", () => {
  it("The Atom feed of RFC 4287 is read with its markup", () => {
    const feed = read(atomSample)
    expect(feed).toMatchObject({
      title: "dive into mark",
      url: "http://example.org/",
      self: "http://example.org/feed.atom",
      hubs: []
    })
    expect(feed?.entries).toHaveLength(1)
    expect(feed?.entries[0]).toMatchObject({
      id: "tag:example.org,2003:3.2397",
      url: "http://example.org/2005/04/02/atom",
      title: "Atom draft-07 snapshot",
      author: "Mark Pilgrim",
      published_at: "2003-12-13T12:29:29.000Z",
      updated_at: "2005-07-31T12:29:29.000Z",
      content: '<div xmlns="http://www.w3.org/1999/xhtml"><p><i>[Update: The Atom draft is finished.]</i></p></div>',
      attachments: [{ url: "http://example.org/audio/ph34r_my_podcast.mp3", type: "audio/mpeg", length: "1337" }]
    })
  })

  it("The RSS feed of the RSS board is read, also an item without a title", () => {
    const feed = read(rssSample)
    expect(feed).toMatchObject({ title: "NASA Space Station News", url: "http://www.nasa.gov/" })
    expect(feed?.entries.map(({ published_at, title }) => [title, published_at])).toEqual([
      ["Louisiana Students to Hear from NASA Astronauts Aboard Space Station", "2023-07-21T13:04:00.000Z"],
      [null, "2023-07-20T19:05:00.000Z"]
    ])
    expect(feed?.entries[1]?.id).toBe(
      "http://www.nasa.gov/press-release/nasa-awards-integrated-mission-operations-contract-iii"
    )
  })

  it("An RSS 1.0 feed is read, whatever its prefixes are", () => {
    expect(read(rdfSample)?.entries).toMatchObject([
      {
        id: "http://xml.com/pub/2000/08/09/xslt/xslt.html",
        title: "Processing Inclusions with XSLT",
        author: "Ada",
        published_at: "2000-08-09T00:00:00.000Z"
      }
    ])
  })

  it("An Atom feed whose elements have a prefix is read like one without", () => {
    const text = `<a:feed xmlns:a="http://www.w3.org/2005/Atom"><a:title>T</a:title><a:entry><a:id>1</a:id><a:title>One</a:title></a:entry></a:feed>`
    expect(read(text)).toMatchObject({ title: "T", entries: [{ id: "1", title: "One" }] })
  })

  it("The JSON feed of the specification is read", () => {
    expect(read(jsonSample)?.entries.map(({ content, id, url }) => [id, url, content])).toEqual([
      ["2", "https://example.org/second-item", "This is a second item."],
      ["1", "https://example.org/initial-post", "<p>Hello, world!</p>"]
    ])
  })

  it("A feed in another encoding is read by what its declaration or its content type says", () => {
    const text =
      '<?xml version="1.0" encoding="iso-8859-1"?><rss><channel><item><title>Zoë</title></item></channel></rss>'
    expect(read(Buffer.from(text, "latin1"))?.entries[0]?.title).toBe("Zoë")
    const plain = text.replace(' encoding="iso-8859-1"', "")
    expect(read(Buffer.from(plain, "latin1"), "text/xml; charset=iso-8859-1")?.entries[0]?.title).toBe("Zoë")
    const utf16 = Buffer.concat([Buffer.from([0xff, 0xfe]), Buffer.from(plain, "utf16le")])
    expect(read(utf16)?.entries[0]?.title).toBe("Zoë")
  })

  it("What is no feed is no feed", () => {
    for (const text of ["", "hello", "<html><body>Hi</body></html>", "{}", "[]", '{"version":1}']) {
      expect(read(text), text).toBeNull()
    }
  })
})

describe("Feeds of other people's software", () => {
  const made = new Feed({
    title: "Shop <news> & more",
    id: "https://shop.example/",
    link: "https://shop.example/",
    copyright: "Shop",
    hub: "https://hub.example/",
    feedLinks: { atom: "https://shop.example/feed.atom", json: "https://shop.example/feed.json" }
  })
  for (const [number, title] of ["Second ]]> post", 'First "post" 😀'].entries()) {
    made.addItem({
      title,
      id: `https://shop.example/posts/${number}`,
      link: `https://shop.example/posts/${number}`,
      description: `Summary ${number}`,
      content: `<p>Text &amp; ${number}</p>`,
      author: [{ name: "Ada", email: "ada@shop.example", link: "https://ada.example" }],
      date: new Date("2026-01-02T03:04:05Z"),
      published: new Date("2026-01-02T03:04:05Z"),
      category: [{ name: "news", term: "news" }]
    })
  }

  it.each([
    ["RSS", made.rss2()],
    ["Atom", made.atom1()],
    ["JSON Feed", made.json1()]
  ])("A generated %s feed has the same entries as another reader finds", (_, text) => {
    const feed = read(text)
    expect(feed?.title).toBe("Shop <news> & more")
    expect(
      feed?.entries.map(({ content, published_at, title, url }) => ({ content, published_at, title, url }))
    ).toEqual(
      [0, 1].map((number) => ({
        content: `<p>Text &amp; ${number}</p>`,
        published_at: "2026-01-02T03:04:05.000Z",
        title: ["Second ]]> post", 'First "post" 😀'][number],
        url: `https://shop.example/posts/${number}`
      }))
    )
    const { feed: other } = parseFeed(text) as {
      readonly feed: { readonly items?: ReadonlyArray<unknown>; readonly entries?: ReadonlyArray<unknown> }
    }
    const others = (other.items ?? other.entries ?? []) as ReadonlyArray<{
      readonly id?: string
      readonly guid?: { readonly value: string }
    }>
    expect(feed?.entries.map(({ id }) => id)).toEqual(others.map(({ guid, id }) => guid?.value ?? id))
  })

  it("The hub and the address of a generated feed are found", () => {
    expect(read(made.atom1())).toMatchObject({
      hubs: ["https://hub.example/"],
      self: "https://shop.example/feed.atom"
    })
  })

  it.each([
    ["Atom", atomSample],
    ["RSS", rssSample],
    ["RSS 1.0", rdfSample],
    ["JSON Feed", jsonSample]
  ])("Another reader finds the same titles in the published %s sample", (_, text) => {
    const { feed: other } = parseFeed(text) as {
      readonly feed: { readonly items?: ReadonlyArray<unknown>; readonly entries?: ReadonlyArray<unknown> }
    }
    const others = (other.items ?? other.entries ?? []) as ReadonlyArray<{
      readonly title?: string | { readonly value: string }
    }>
    const titleOf = (title: string | { readonly value: string } | undefined) =>
      typeof title === "string" ? title : (title?.value ?? null)
    expect(read(text)?.entries.map(({ title }) => title)).toEqual(others.map(({ title }) => titleOf(title)))
  })
})

describe("Feeds that are made to do harm", () => {
  it("Entities of a document type are not expanded", () => {
    const text =
      '<!DOCTYPE rss [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;"><!ENTITY file SYSTEM "file:///etc/passwd">]>' +
      "<rss><channel><item><guid>1</guid><title>&b;&file;&lt;</title></item></channel></rss>"
    expect(read(text)?.entries[0]?.title).toBe("&b;&file;<")
  })

  it("An entry is identified by its id, otherwise by its link, otherwise by what it says", () => {
    const of = (item: string) => entryId(read(`<rss><channel><item>${item}</item></channel></rss>`)!.entries[0]!)
    expect(of("<guid>g</guid><link>l</link>")).toBe("entry:g")
    expect(of("<link>l</link>")).toBe("entry:l")
    expect(of("<title>t</title>")).toBe(of("<title> t </title>"))
    expect(of("<title>t</title>")).not.toBe(of("<title>u</title>"))
    expect(of(`<guid>${"g".repeat(2_000)}</guid>`)).toMatch(/^entry:sha256:[0-9a-f]{64}$/)
  })

  const sizes: ReadonlyArray<readonly [name: string, text: string]> = [
    ["100,000 entries", `<rss><channel>${"<item><guid>1</guid><title>t</title></item>".repeat(100_000)}`],
    [
      "one entry of 10 MiB",
      `<rss><channel><item><guid>1</guid><title>${"x".repeat(10_000_000)}</title></item></channel></rss>`
    ],
    [
      "two million signs that are escaped",
      `<rss><channel><item><title>${"&amp;".repeat(2_000_000)}</title></item></channel></rss>`
    ],
    ["a million levels", `<rss>${"<a>".repeat(1_000_000)}`],
    ["a million attributes", `<rss><channel ${'a="" '.repeat(1_000_000)}/></rss>`],
    ["10 MiB of nothing", " ".repeat(10_485_760)],
    ["a million categories", `<rss><channel><item>${"<category/>".repeat(900_000)}</item></channel></rss>`]
  ]
  it.effect.each(sizes)("A feed of $0 is read in steps, and at most 1,000 of its entries", ([, text]) =>
    Effect.gen(function* () {
      const bytes = Buffer.from(text)
      const longestStep = Effect.gen(function* () {
        let longest = 0
        const work = parsingFeed(bytes, null)
        const feed = yield* inSlices({
          next: () => {
            const before = cpuMillis()
            const step = work.next()
            longest = Math.max(longest, cpuMillis() - before)
            return step
          }
        })
        expect(feed?.entries.length ?? 0).toBeLessThanOrEqual(1_000)
        return longest
      })
      const boundMs = (): number => 50 * timesSlower()
      expect(yield* leastMs(boundMs, longestStep)).toBeLessThan(boundMs())
    })
  )
})
