import { parseJson } from './parse-json.ts'

/** A text, or its pieces in order. Large texts are sent in pieces, because joining them would copy them again. */
export type Text = string | readonly string[]

export const isText = (value: unknown): value is Text =>
  typeof value === 'string' || (Array.isArray(value) && value.every((piece) => typeof piece === 'string'))

export const inOnePiece = (text: Text): string => (typeof text === 'string' ? text : text.join(''))

/** In UTF-16 units. */
export const lengthOf = (text: Text): number =>
  typeof text === 'string' ? text.length : text.reduce((sum, piece) => sum + piece.length, 0)

/** A result whose JSON text already exists. It is sent as it is; `value` parses it, for callers in this process. */
export class JsonText {
  readonly #text: Text

  constructor(text: Text) {
    this.#text = text
  }

  get text(): string {
    return inOnePiece(this.#text)
  }

  get value(): unknown {
    return parseJson(this.text)
  }

  /** The text with others before and after it. */
  within(before: string, behind: string): Text {
    if (typeof this.#text === 'string') return `${before}${this.#text}${behind}`
    const [first = '', ...others] = this.#text
    const last = others.pop() ?? ''
    return [before + first, ...others, last + behind]
  }
}

/** The value of a result, which may be JSON text. */
export const resultValue = (result: unknown): unknown => (result instanceof JsonText ? result.value : result)
