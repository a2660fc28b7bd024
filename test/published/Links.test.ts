import { existsSync, globSync, readFileSync } from "node:fs"
import { dirname, join, normalize } from "node:path"
import { fileURLToPath } from "node:url"
import { expect, it } from "vitest"
import { headingAnchor } from "../../packages/api/src/HeadingAnchor.ts"

/**
 * Every link from one page of the project to another leads to an existing file and heading. Links to other sites are not tested,
 * because a test needs no network.
 */
const root = fileURLToPath(new URL("../..", import.meta.url))

const pages = globSync("**/*.md", { cwd: root, exclude: (name) => name === "node_modules" || name === ".tidegate" })

/** The page without code blocks, in which a bracket is not a link. */
const textOf = (path: string): string => readFileSync(join(root, path), "utf8").replaceAll(/```[^]*?```/g, "")

const headingsOf = (path: string): ReadonlySet<string> => {
  const seen = new Map<string, number>()
  const anchors = new Set<string>()
  for (const [, heading] of textOf(path).matchAll(/^#+ (.+)$/gm)) {
    const name = headingAnchor(heading!.replaceAll(/\[([^\]]*)\]\([^)]*\)/g, "$1"))
    const count = seen.get(name) ?? 0
    seen.set(name, count + 1)
    anchors.add(count === 0 ? name : `${name}-${count}`)
  }
  return anchors
}

const isMissing = (page: string, link: string): boolean => {
  const [path, heading] = link.split("#")
  const target = path === "" ? page : normalize(join(dirname(page), path!))
  if (!existsSync(join(root, target))) return true
  return heading !== undefined && target.endsWith(".md") && !headingsOf(target).has(heading)
}

it("Every link between pages leads to an existing page and heading", () => {
  const links = pages.flatMap((page) =>
    [...textOf(page).matchAll(/\]\(([^)\s]+)\)/g)]
      .map(([, link]) => link!)
      .filter((link) => !/^[a-z]+:/.test(link))
      .map((link) => ({ page, link }))
  )
  expect(links.length).toBeGreaterThan(100)
  expect(links.filter(({ page, link }) => isMissing(page, link))).toEqual([])
})
