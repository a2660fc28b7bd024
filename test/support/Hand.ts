import type { Locator } from "playwright-core"

/** Acts as a user: clicks and writes in a page, and counts both. */
export class Hand {
  clicks = 0
  fields = 0

  async click(place: Locator): Promise<void> {
    this.clicks += 1
    await place.click()
  }

  /** A choice is two clicks: one opens the list, one takes an entry. */
  async choose(list: Locator, entry: string | { readonly label: string }): Promise<void> {
    this.clicks += 2
    await list.selectOption(entry)
  }

  async write(field: Locator, text: string): Promise<void> {
    this.fields += 1
    await field.fill(text)
  }

  /** Writes, and presses Enter, which is no click. */
  async search(field: Locator, text: string): Promise<void> {
    await this.write(field, text)
    await field.press("Enter")
  }
}
