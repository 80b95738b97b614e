/** Scripts whose letters join, so that U+200C and U+200D between two of them belong to the spelling. */
const joining = 'Arab Syrc Mong Deva Beng Guru Gujr Orya Taml Telu Knda Mlym Sinh'.split(' ')
const letter = new RegExp(`[${joining.map((script) => `\\p{scx=${script}}`).join('')}]`, 'u')
const picture = /\p{ExtPict}/u
const tone = /[\ufe0f\u{1f3fb}-\u{1f3ff}]/u

const others = String.raw`\0-\x1f\x7f-\x9f\xad\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff`

/** Characters that hide, reverse or break the text beside them. */
const odd = new RegExp(`([${others}\\u200c\\u200d])`, 'u')

/** Nothing odd, and no marks: most of what is shown. */
const usual = /^[ -~\u00a0-\u00ac\u00ae-\u02ff]*$/

/** Text written by people and programs, kept from changing what is around it. */
export function Text({ children, long = false }: { children: string; long?: boolean }) {
  return (
    <bdi class={long ? 'text is-long' : 'text'} title={long ? undefined : plain(children.slice(0, 300))}>
      {usual.test(children) ? children : partsOf(children, long)}
    </bdi>
  )
}

/** Text and odd characters in turn. */
function split(text: string): string[] {
  const [first = '', ...rest] = text.split(odd)
  const parts = [first]
  let before = first
  for (let at = 0; at < rest.length; at += 2) {
    const [character = '', after = ''] = rest.slice(at, at + 2)
    if (belongs(before, character, after)) parts.push(`${parts.pop()}${character}${after}`)
    else parts.push(character, after)
    before = after
  }
  return parts
}

/** Between two such letters, or between pictures of one emoji. Looking behind, WebKit finds no emoji. */
function belongs(before: string, joiner: string, after: string): boolean {
  const [next = ''] = after
  const last = [...before.slice(-4)]
  if (letter.test(next)) return /[\u200c\u200d]/.test(joiner) && letter.test(last.at(-1) ?? '')
  const joined = last.findLast((one) => !tone.test(one)) ?? ''
  return joiner === '\u200d' && picture.test(next) && picture.test(joined)
}

const partsOf = (text: string, long: boolean) =>
  split(text).map((part, index) => (index % 2 ? shown(part, long) : calm(part)))

function shown(character: string, long: boolean) {
  if (long && /[\n\t]/.test(character)) return character
  return <span class="chip">{codeOf(character)}</span>
}

const codeOf = (character: string): string =>
  `U+${character.charCodeAt(0).toString(16).toUpperCase().padStart(4, '0')}`

/** The same where only text fits, as in the options of a list. */
export const plain = (text: string): string =>
  split(text)
    .map((part, index) => (index % 2 ? codeOf(part) : calm(part)))
    .join('')

/** Max four marks on a letter: a thousand of them would cover the lines above. */
const calm = (text: string): string => text.replace(/(\p{M}{4})\p{M}+/gu, '$1')

/** Whether a person can type it as it is shown. */
export const isTypable = (text: string): boolean =>
  text.length <= 80 && split(text).length === 1 && calm(text) === text
