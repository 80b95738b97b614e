/** Our own sentences, in which `backticks` mark what is typed or found literally. */
export const Words = ({ children }: { children: string }) => (
  <>{children.split('`').map((part, index) => (index % 2 ? <code key={index}>{part}</code> : part))}</>
)
