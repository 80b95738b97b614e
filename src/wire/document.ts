import { createHash } from 'node:crypto'
import { JsonText } from './json-text.ts'

/** A result that is the same for every caller. Its JSON text is made once, so that answering costs no work. */
export class Document extends JsonText {
  readonly #etag: string

  constructor(content: object) {
    super(JSON.stringify(content))
    this.#etag = `"${createHash('sha256').update(this.text).digest('base64url').slice(0, 27)}"`
  }

  get etag(): string {
    return this.#etag
  }
}
