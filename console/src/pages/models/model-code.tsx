import { Code } from '@mantine/core';
import type { ModelDetails } from '../../api/models.ts';
import { CodeInLanguages } from '../playground/code/code-in-languages.tsx';
import { sampleCode } from './sample-code.ts';

/** A first request to a model as a program. */
export function ModelCode({ model }: { model: ModelDetails }) {
  return (
    <CodeInLanguages
      what="A request"
      hint={
        <>
          The code reads your key from the environment variable <Code>SLUICE_API_KEY</Code>.
        </>
      }
      code={(language, baseUrl) => sampleCode(language, baseUrl, model)}
    />
  );
}
