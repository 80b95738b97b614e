import { createHash } from 'node:crypto'

/** A result that is the same for every caller. Its JSON text is made once, so asking for it costs no work. */
export class Document {
  readonly #text: string
  readonly #etag: string

  constructor(content: object) {
    Object.assign(this, content)
    this.#text = JSON.stringify(content)
    this.#etag = `"${createHash('sha256').update(this.#text).digest('base64url').slice(0, 27)}"`
  }

  get text(): string {
    return this.#text
  }

  get etag(): string {
    return this.#etag
  }
}
