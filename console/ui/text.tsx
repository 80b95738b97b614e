/** Scripts whose letters join, so that U+200C and U+200D between two of them belong to the spelling. */
const joining = 'Arab Syrc Mong Deva Beng Guru Gujr Orya Taml Telu Knda Mlym Sinh'.split(' ')
const letter = `[${joining.map((script) => `\\p{scx=${script}}`).join('')}]`
const emoji = String.raw`\p{ExtPict}`
const tone = String.raw`[\ufe0f\u{1f3fb}-\u{1f3ff}]?`
const fine = String.raw`(?<=${letter})[\u200c\u200d]${letter}|(?<=${emoji}${tone})\u200d${emoji}`
const others = String.raw`[\0-\x1f\x7f-\x9f\xad\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff]`

/** Characters that hide, reverse or break the text beside them. */
const odd = new RegExp(String.raw`(${others}|(?!${fine})[\u200c\u200d])`, 'u')

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

const partsOf = (text: string, long: boolean) =>
  text.split(odd).map((part, index) => (index % 2 ? shown(part, long) : calm(part)))

function shown(character: string, long: boolean) {
  if (long && /[\n\t]/.test(character)) return character
  return <span class="chip">{codeOf(character)}</span>
}

const codeOf = (character: string): string =>
  `U+${character.charCodeAt(0).toString(16).toUpperCase().padStart(4, '0')}`

/** The same where only text fits, as in the options of a list. */
export const plain = (text: string): string =>
  text
    .split(odd)
    .map((part, index) => (index % 2 ? codeOf(part) : calm(part)))
    .join('')

/** Max four marks on a letter: a thousand of them would cover the lines above. */
const calm = (text: string): string => text.replace(/(\p{M}{4})\p{M}+/gu, '$1')

/** Whether a person can type it as it is shown. */
export const isTypable = (text: string): boolean =>
  text.length <= 80 && !odd.test(text) && calm(text) === text
