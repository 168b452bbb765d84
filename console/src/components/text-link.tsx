import { Anchor } from '@mantine/core';
import { createLink } from '@tanstack/react-router';
import type { ComponentProps } from 'react';

type AnchorProps = Omit<ComponentProps<typeof Anchor<'a'>>, 'href'>;

/** A link to a page of the console inside a text, in the same size; underlined, so that colour is not the only distinction. */
export const TextLink = createLink(({ ...props }: AnchorProps) => (
  <Anchor<'a'> underline="always" inherit={props.size === undefined} {...props} />
));
